module drawbridge/network-policy-api

go 1.26.0

require sigs.k8s.io/network-policy-api v0.3.0
