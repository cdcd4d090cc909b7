module drawbridge/canonical

go 1.26.0
