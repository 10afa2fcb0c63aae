// SPDX-License-Identifier: Apache-2.0

package inject

// Labels. What asks for a proxy is a label because webhooks select by labels.
const (
	// LabelInject on a pod or a namespace: Enabled or Disabled.
	LabelInject = "plumbline.dev/inject"
	// LabelMode on a pod or a namespace: the Mode, if not that of the installation.
	LabelMode = "plumbline.dev/inject-mode"
	// LabelProxy is on every injected pod, with its mode, and on the pods of gateways,
	// with Gateway. It is how the control plane finds the pods that must acknowledge a route.
	LabelProxy = "plumbline.dev/proxy"

	Enabled  = "enabled"
	Disabled = "disabled"

	Gateway = "gateway"
)

// Annotations of a pod.
const (
	// AnnotationConcurrency is the number of Envoy's worker threads, 1 to 64.
	AnnotationConcurrency = "plumbline.dev/proxy-concurrency"
	// What the proxy requests and may use, as quantities of Kubernetes.
	AnnotationCPU         = "plumbline.dev/proxy-cpu"
	AnnotationCPULimit    = "plumbline.dev/proxy-cpu-limit"
	AnnotationMemory      = "plumbline.dev/proxy-memory"
	AnnotationMemoryLimit = "plumbline.dev/proxy-memory-limit"
	// AnnotationExcludePorts are destination ports that are not redirected: "5432,6379".
	AnnotationExcludePorts = "plumbline.dev/exclude-outbound-ports"
	// AnnotationExcludeCIDRs are destinations that are not redirected: "10.0.0.0/8,fd00::/8".
	AnnotationExcludeCIDRs = "plumbline.dev/exclude-outbound-cidrs"

	// AnnotationLocalPorts, on a pod or for all that have none on their namespace, are
	// the local ports of mode Explicit and what they lead to; see [ParseLocalPorts].
	AnnotationLocalPorts = "plumbline.dev/local-ports"

	// Written by us: the files that tell Envoy to watch the token and the CA bundle.
	annotationToken = "plumbline.dev/proxy-token-source" //nolint:gosec // a name
	annotationCA    = "plumbline.dev/proxy-ca-source"
)

// Names in an injected pod.
const (
	ProxyContainer    = "plumbline-proxy"
	RedirectContainer = "plumbline-redirect"
	Volume            = "plumbline-xds"
	// MetricsPortName is that of the port with /metrics, for who scrapes pods.
	MetricsPortName = "plb-metrics"
)

// CAConfigMap, in every namespace with injected pods, has the CA bundle of the
// control plane under CAKey.
const (
	CAConfigMap = "plumbline-xds-ca"
	CAKey       = "ca.crt"
)

// Directory is where the volume is mounted in the proxy.
const Directory = "/etc/plumbline/xds"

// Ports of a proxy.
const (
	// AdminPort is on loopback only.
	AdminPort = 15000
	// CapturePort takes redirected connections, on loopback only.
	CapturePort = 15001
	// StatusPort answers /ready and /metrics, on the pod's address.
	StatusPort = 15021
)

// Mode is how requests come to the proxy.
type Mode string

// In mode Explicit the application speaks to a local port for each upstream. In mode
// Redirect its outbound TCP is sent to the proxy, by rules in the pod's network.
const (
	Explicit Mode = "explicit"
	Redirect Mode = "redirect"
)

func (m Mode) valid() bool { return m == Explicit || m == Redirect }
