// A plain injector in the style of controller-runtime, written for comparison in `make bench` and for nothing else.
//
// In: --port, --certificates (a folder with tls.crt and tls.key). It decodes the Pod into its typed struct, adds the
// containers and volumes that Drawbridge adds in mode envoy-sidecar, encodes it again and answers the difference as a
// JSON patch: what the field's Go webhooks do. It looks nothing up, so it is faster than they are.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const images = "ghcr.io/kagenti/kagenti-extensions/"

type injector struct{ decoder admission.Decoder }

func (i *injector) Handle(ctx context.Context, request admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := i.decoder.Decode(request, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if pod.Labels["kagenti.io/type"] != "agent" || pod.Labels["kagenti.io/inject"] == "disabled" {
		return admission.Allowed("not enrolled")
	}
	inject(pod)
	injected, err := json.Marshal(pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	log.FromContext(ctx).Info("injected", "namespace", request.Namespace, "name", pod.GenerateName, "uid", request.UID)
	return admission.PatchResponseFromRaw(request.Object.Raw, injected)
}

func inject(pod *corev1.Pod) {
	spec := &pod.Spec
	spec.InitContainers = append([]corev1.Container{proxyInit(), envoy(), spiffeHelper()}, spec.InitContainers...)
	configMap := func(name string) corev1.Volume {
		source := corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &source}}
	}
	empty := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	}
	readOnly := true
	spec.Volumes = append(spec.Volumes,
		empty("shared-data"),
		configMap("envoy-config"),
		configMap("spiffe-helper-config"),
		empty("svid-output"),
		corev1.Volume{Name: "spire-agent-socket", VolumeSource: corev1.VolumeSource{
			CSI: &corev1.CSIVolumeSource{Driver: "csi.spiffe.io", ReadOnly: &readOnly},
		}},
		configMap("authproxy-routes"),
		corev1.Volume{Name: "authbridge-runtime-config", VolumeSource: corev1.VolumeSource{
			DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{
				Path:     "config.yaml",
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['kagenti.io/authbridge-config']"},
			}}},
		}},
	)
	spec.ServiceAccountName = pod.Labels["app.kubernetes.io/name"]
	group := int64(0)
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	spec.SecurityContext.FSGroup = &group
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations["kagenti.io/authbridge-status"] = "injected"
}

func sidecar(name, image string, user int64, cpu, memory, cpuLimit, memoryLimit string) corev1.Container {
	always := corev1.ContainerRestartPolicyAlways
	escalation := false
	quantity := resource.MustParse
	return corev1.Container{
		Name:            name,
		Image:           images + image + ":v0.5.0-alpha.14",
		ImagePullPolicy: corev1.PullIfNotPresent,
		RestartPolicy:   &always,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": quantity(cpu), "memory": quantity(memory)},
			Limits:   corev1.ResourceList{"cpu": quantity(cpuLimit), "memory": quantity(memoryLimit)},
		},
		SecurityContext: &corev1.SecurityContext{
			RunAsUser:                &user,
			RunAsGroup:               &user,
			AllowPrivilegeEscalation: &escalation,
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}

func proxyInit() corev1.Container {
	container := sidecar("proxy-init", "proxy-init", 0, "10m", "10Mi", "10m", "10Mi")
	container.RestartPolicy = nil
	container.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN", "NET_RAW"}
	container.Env = []corev1.EnvVar{
		{Name: "PROXY_PORT", Value: "15123"},
		{Name: "INBOUND_PROXY_PORT", Value: "15124"},
		{Name: "PROXY_UID", Value: "1337"},
		{Name: "OUTBOUND_PORTS_EXCLUDE", Value: "8080"},
	}
	return container
}

func envoy() corev1.Container {
	container := sidecar("envoy-proxy", "authbridge-envoy", 1337, "50m", "64Mi", "200m", "256Mi")
	optional := true
	for _, key := range []string{"TOKEN_URL", "ISSUER", "EXPECTED_AUDIENCE", "TARGET_AUDIENCE", "TARGET_SCOPES", "DEFAULT_OUTBOUND_POLICY"} {
		container.Env = append(container.Env, corev1.EnvVar{Name: key, ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "authbridge-config"}, Key: key, Optional: &optional,
			},
		}})
	}
	container.Ports = []corev1.ContainerPort{
		{Name: "envoy-outbound", ContainerPort: 15123, Protocol: corev1.ProtocolTCP},
		{Name: "envoy-inbound", ContainerPort: 15124, Protocol: corev1.ProtocolTCP},
		{Name: "envoy-admin", ContainerPort: 9901, Protocol: corev1.ProtocolTCP},
		{Name: "ext-proc", ContainerPort: 9090, Protocol: corev1.ProtocolTCP},
	}
	container.VolumeMounts = []corev1.VolumeMount{
		{Name: "envoy-config", MountPath: "/etc/envoy", ReadOnly: true},
		{Name: "shared-data", MountPath: "/shared", ReadOnly: true},
		{Name: "svid-output", MountPath: "/opt", ReadOnly: true},
		{Name: "authproxy-routes", MountPath: "/etc/authproxy", ReadOnly: true},
		{Name: "authbridge-runtime-config", MountPath: "/etc/authbridge", ReadOnly: true},
	}
	container.StartupProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(15124)}},
		PeriodSeconds: 1, FailureThreshold: 60,
	}
	return container
}

func spiffeHelper() corev1.Container {
	container := sidecar("spiffe-helper", "spiffe-helper", 1000, "50m", "64Mi", "100m", "128Mi")
	container.Command = []string{"/spiffe-helper", "-config=/etc/spiffe-helper/helper.conf", "run"}
	container.VolumeMounts = []corev1.VolumeMount{
		{Name: "spiffe-helper-config", MountPath: "/etc/spiffe-helper"},
		{Name: "spire-agent-socket", MountPath: "/spiffe-workload-api"},
		{Name: "svid-output", MountPath: "/opt"},
		{Name: "shared-data", MountPath: "/shared"},
	}
	return container
}

func main() {
	port := flag.Int("port", 0, "where to listen, on 127.0.0.1")
	certificates := flag.String("certificates", "", "folder with tls.crt and tls.key")
	flag.Parse()
	log.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		log.Log.Error(err, "scheme")
		os.Exit(1)
	}
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: *port, CertDir: *certificates})
	handler := &injector{decoder: admission.NewDecoder(scheme)}
	server.Register("/mutate", &webhook.Admission{Handler: handler})
	if err := server.Start(signals.SetupSignalHandler()); err != nil {
		log.Log.Error(err, "serving")
		os.Exit(1)
	}
}
