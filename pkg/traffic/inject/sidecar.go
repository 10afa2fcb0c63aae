// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// addition is all that a pod gets. Nothing of the pod is changed besides.
type addition struct {
	init        []corev1.Container // before the pod's own, in this order
	volume      corev1.Volume
	labels      map[string]string
	annotations map[string]string
}

// startupPeriods is how many seconds Envoy may wait for its configuration. To start
// it anew would not help while the control plane is away, and the kubelet would wait
// longer and longer between its tries.
const startupPeriods = 3600

func additionTo(pod *corev1.Pod, c Config, mode Mode) (addition, error) {
	if err := c.Validate(); err != nil {
		return addition{}, fmt.Errorf("the configuration of the proxies: %w", err)
	}
	c = c.withDefaults()
	o, err := optionsOf(pod, c)
	if err != nil {
		return addition{}, err
	}
	c.Bootstrap.Directory, c.Bootstrap.Capture = Directory, mode == Redirect
	bootstrap, err := Bootstrap(c.Bootstrap)
	if err != nil {
		return addition{}, err
	}
	files, err := SecretFiles(Directory)
	if err != nil {
		return addition{}, err
	}
	a := addition{
		volume:      volume(c),
		labels:      map[string]string{LabelProxy: string(mode)},
		annotations: map[string]string{annotationToken: files[tokenSource], annotationCA: files[caSource]},
	}
	switch mode {
	case Explicit:
	case Redirect:
		if c.RedirectImage == "" {
			return addition{}, fmt.Errorf("mode %s needs an image that sets the rules", Redirect)
		}
		// First: what runs before the rules are set goes past the proxy.
		a.init = append(a.init, redirectContainer(c, o))
	default:
		return addition{}, fmt.Errorf("the mode %q is neither %s nor %s", mode, Explicit, Redirect)
	}
	o.resources = keepGuaranteed(pod, o.resources)
	a.init = append(a.init, proxyContainer(c, o, bootstrap))
	return a, nil
}

func proxyContainer(c Config, o options, bootstrap []byte) corev1.Container {
	return corev1.Container{
		Name: ProxyContainer, Image: c.ProxyImage, ImagePullPolicy: c.PullPolicy,
		// Not the entrypoint of the image, which may be a shell script.
		Command: []string{"envoy"},
		Args: []string{
			"--config-yaml", literal(bootstrap),
			"--service-node", "$(POD_NAMESPACE)/$(POD_NAME)/$(POD_UID)",
			"--service-cluster", "$(POD_NAMESPACE)",
			"--concurrency", strconv.Itoa(o.concurrency),
			// It needs shared memory, and a sidecar has no successor in its pod.
			"--disable-hot-restart",
			// Connections to a Service that is not managed any more close with their next answer.
			// What has no answer, as a WebSocket, may go on for Envoy's ten minutes.
			"--drain-strategy", "immediate",
			"--log-level", "warning",
		},
		Env: []corev1.EnvVar{
			fromPod("POD_NAMESPACE", "metadata.namespace"),
			fromPod("POD_NAME", "metadata.name"),
			fromPod("POD_UID", "metadata.uid"),
		},
		Ports:         []corev1.ContainerPort{{Name: MetricsPortName, ContainerPort: StatusPort, Protocol: corev1.ProtocolTCP}},
		Resources:     o.resources,
		RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		StartupProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: readyPath, Port: intstr.FromInt32(StatusPort)}},
			PeriodSeconds: 1, TimeoutSeconds: 1, FailureThreshold: startupPeriods,
		},
		VolumeMounts:             []corev1.VolumeMount{{Name: Volume, MountPath: Directory, ReadOnly: true}, noAPIToken()},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          restricted(c.UID),
	}
}

// redirectContainer is told everything; it reads nothing of the pod.
func redirectContainer(c Config, o options) corev1.Container {
	context := restricted(0)
	context.RunAsNonRoot = new(false)
	context.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
	return corev1.Container{
		Name: RedirectContainer, Image: c.RedirectImage, ImagePullPolicy: c.PullPolicy,
		Args: []string{
			fmt.Sprintf("--proxy-uid=%d", c.UID),
			fmt.Sprintf("--capture-port=%d", CapturePort),
			fmt.Sprintf("--ipv6=%t", c.Bootstrap.IPv6),
			"--exclude-ports=" + joined(o.excludePorts, func(p uint16) string { return strconv.Itoa(int(p)) }),
			"--exclude-cidrs=" + joined(o.excludeCIDRs, netip.Prefix.String),
		},
		// As much as the proxy: the scheduler takes the larger of the two, not both.
		Resources:                o.resources,
		VolumeMounts:             []corev1.VolumeMount{noAPIToken()},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          context,
	}
}

// restricted is what Pod Security "restricted" asks of a container, said in full, so
// that nothing of the pod's own securityContext matters.
func restricted(uid int64) *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser: new(uid), RunAsGroup: new(uid), RunAsNonRoot: new(true),
		AllowPrivilegeEscalation: new(false), Privileged: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// volume has all files in one directory, which the kubelet replaces as a whole when
// one of them changes; that is the move which Envoy watches for. It is no emptyDir,
// which would keep an autoscaler from emptying a node.
func volume(c Config) corev1.Volume {
	sources := []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: identity.Audience, Path: tokenFile, ExpirationSeconds: new(int64(c.TokenLifetime / time.Second)),
		}},
		// Not optional: a pod without it waits, and an event names it.
		{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: CAConfigMap},
			Items:                []corev1.KeyToPath{{Key: CAKey, Path: caFile}},
		}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
			fileFrom(annotationToken, tokenSource), fileFrom(annotationCA, caSource),
		}}},
	}
	return corev1.Volume{Name: Volume, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: sources, DefaultMode: new(int32(0o444))},
	}}
}

// noAPIToken is mounted where the API server would mount the application's token for
// itself into every container that has nothing there; ours have no use for it.
func noAPIToken() corev1.VolumeMount {
	return corev1.VolumeMount{Name: Volume, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}
}

func fileFrom(annotation, path string) corev1.DownwardAPIVolumeFile {
	field := &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + annotation + "']"}
	return corev1.DownwardAPIVolumeFile{Path: path, FieldRef: field}
}

func fromPod(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path},
	}}
}

// literal is JSON in which the kubelet finds no $(VARIABLE). In JSON a dollar can only
// be in a string.
func literal(json []byte) string { return strings.ReplaceAll(string(json), "$", `\u0024`) }

func joined[T any](items []T, text func(T) string) string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = text(item)
	}
	return strings.Join(out, ",")
}
