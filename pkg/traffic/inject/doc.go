// SPDX-License-Identifier: Apache-2.0

// Package inject says what a pod becomes when it gets a proxy: a function of the pod
// and of the installation, nothing else. It asks nobody, and equal input gives equal
// bytes.
//
//	pod, labels of its namespace ──▶ Decide ──▶ Inject, Leave or Refuse, and why
//	pod, Config, mode            ──▶ Pod    ──▶ the pod with the proxy
//	                             └─▶ Patch  ──▶ the same as a JSON patch
//	BootstrapConfig              ──▶ Bootstrap ──▶ what the Envoy starts with
//
// # Who gets a proxy
//
// A pod asks for one by the label [LabelInject], or its namespace does for all its
// pods; the pod's word holds. A pod that cannot have one is refused with a reason and
// left as it is: it is for the caller to tell, never to fail the pod.
//
// # The proxy in the pod
//
// The proxy is a native sidecar, an init container with restartPolicy Always, before
// the user's own init containers. So they can use it already, the kubelet starts no
// other container before Envoy has its configuration (startup probe), stops it only
// when all others have ended, and a Job ends with its own containers. For the same
// reason there is no preStop hook: that of a sidecar runs at the beginning of the
// pod's end, while the application still sends requests
// (https://github.com/kubernetes/enhancements/tree/master/keps/sig-node/753-sidecar-containers).
//
// While no control plane can be reached a new pod waits; pods that run are not
// concerned. There is no readiness probe: requests to the pod do not go through the
// proxy, and a mistake of ours must not take every pod out of its Service at once.
//
// # No shell, no template
//
// The bootstrap is an argument (--config-yaml), complete but for the node's id, which
// the kubelet fills in from the pod ($(POD_NAME)). What Envoy reads from files is one
// projected volume: the token, the CA bundle, and the two small files that tell Envoy
// to watch those, which come from annotations of the pod through the downward API. So
// a pod depends on one object besides itself, the ConfigMap of the CA bundle, and an
// upgrade of ours changes nothing under a running proxy.
//
// # Modes
//
// [Explicit]: the application speaks to a local port for each upstream, as the
// annotation [AnnotationLocalPorts] says; no privilege, the pod meets Pod Security
// "restricted". [Redirect]: an init container with
// NET_ADMIN sends the pod's outbound TCP to the proxy, which passes on untouched what
// it does not know.
//
// Adapter. It uses Envoy types.
package inject
