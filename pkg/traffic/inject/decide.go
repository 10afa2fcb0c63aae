// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Outcome is what is to be done with a pod.
type Outcome string

// A pod to Inject gets a proxy. One to Leave did not ask for it, or has it. One to
// Refuse asked and cannot have it; it is created as it is, with a warning.
const (
	Inject Outcome = "Inject"
	Leave  Outcome = "Leave"
	Refuse Outcome = "Refuse"
)

// Reason of an outcome, out of a closed list.
type Reason string

// What a pod is injected, left and refused for.
const (
	Asked           Reason = "Asked"
	NotAsked        Reason = "NotAsked"
	OptedOut        Reason = "OptedOut"
	AlreadyInjected Reason = "AlreadyInjected"

	WrongValue      Reason = "WrongValue"
	ModeUnavailable Reason = "ModeUnavailable"
	HostNetwork     Reason = "HostNetwork"
	MirrorPod       Reason = "MirrorPod"
	Windows         Reason = "Windows"
	NoClusterDNS    Reason = "NoClusterDNS"
	NameTaken       Reason = "NameTaken"
	PortTaken       Reason = "PortTaken"
	RunsAsTheProxy  Reason = "RunsAsTheProxy"
	OtherMesh       Reason = "OtherMesh"
)

// Decision about a pod. Message is for people, and empty for a pod that did not ask.
type Decision struct {
	Outcome Outcome
	Reason  Reason
	Mode    Mode
	Message string
}

// Decide says whether a pod gets a proxy. The label of the pod goes before that of
// its namespace. What is wrong with a pod that asked is refused here, so that Pod and
// Patch fail for reasons of the installation alone.
func Decide(pod *corev1.Pod, namespaceLabels map[string]string, c Config) Decision {
	c = c.withDefaults()
	value := label(pod, namespaceLabels, LabelInject)
	_, own := pod.Labels[LabelInject]
	mode := Mode(label(pod, namespaceLabels, LabelMode))
	if mode == "" {
		mode = c.Mode
	}
	switch {
	case value == "" && !own: // an empty word of the pod itself is a wrong one
		return Decision{Outcome: Leave, Reason: NotAsked}
	case value == Disabled:
		return Decision{Outcome: Leave, Reason: OptedOut}
	case value != Enabled:
		return refuse(WrongValue, "the label %s is %q, not %s or %s", LabelInject, value, Enabled, Disabled)
	case Injected(pod) && HasIstio(pod): // whose webhook was called after ours
		return refuse(OtherMesh, "the pod has a proxy of Istio beside its own, and one of the two does not start: both need the ports %d and %d", AdminPort, StatusPort)
	case Injected(pod):
		return Decision{Outcome: Leave, Reason: AlreadyInjected, Mode: Mode(pod.Labels[LabelProxy])}
	case !mode.valid():
		return refuse(WrongValue, "the label %s is %q, not %s or %s", LabelMode, mode, Explicit, Redirect)
	case mode == Redirect && c.RedirectImage == "":
		return refuse(ModeUnavailable, "this installation has no image that sets the rules of mode %s", Redirect)
	}
	for _, check := range []func(*corev1.Pod, Mode, Config) Decision{kindOfPod, otherMesh, annotations, localPorts, names, ports, users} {
		if d := check(pod, mode, c); d.Outcome != "" {
			return d
		}
	}
	return Decision{Outcome: Inject, Reason: Asked, Mode: mode}
}

func refuse(reason Reason, format string, args ...any) Decision {
	return Decision{Outcome: Refuse, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func label(pod *corev1.Pod, namespaceLabels map[string]string, name string) string {
	if value, ok := pod.Labels[name]; ok {
		return value
	}
	return namespaceLabels[name]
}

// Injected says whether a pod has a proxy of ours: the label and the sidecar.
func Injected(pod *corev1.Pod) bool {
	return Mode(pod.Labels[LabelProxy]).valid() && slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == ProxyContainer && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

func kindOfPod(pod *corev1.Pod, _ Mode, c Config) Decision {
	_, notAnAddress := netip.ParseAddr(c.Bootstrap.XDSHost)
	switch {
	case pod.Spec.HostNetwork:
		return refuse(HostNetwork, "a pod in the network of its node shares it with other proxies")
	case pod.Annotations[corev1.MirrorPodAnnotationKey] != "":
		return refuse(MirrorPod, "a static pod is made by its kubelet, not by the API server")
	case pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows:
		return refuse(Windows, "there is no proxy for Windows")
	case pod.Spec.DNSPolicy == corev1.DNSDefault && notAnAddress != nil:
		return refuse(NoClusterDNS, "with dnsPolicy Default the proxy cannot look up %s", c.Bootstrap.XDSHost)
	}
	return Decision{}
}

func annotations(pod *corev1.Pod, mode Mode, c Config) Decision {
	o, err := optionsOf(pod, c)
	switch {
	case err != nil:
		return refuse(WrongValue, "%v", err)
	case mode == Redirect:
		return exclusions(o, c)
	}
	return Decision{}
}

// localPorts refuses what would be left out later: a pod that speaks to a port where
// nobody listens fails in a way that nobody understands. Only the pod's own annotation
// is known here.
func localPorts(pod *corev1.Pod, mode Mode, _ Config) Decision {
	if mode != Explicit {
		return Decision{}
	}
	wanted, wrong := ParseLocalPorts(pod.Annotations[AnnotationLocalPorts])
	if len(wrong) > 0 {
		return refuse(WrongValue, "annotation %s: %v", AnnotationLocalPorts, wrong[0])
	}
	for container := range containers(pod) {
		for _, port := range container.Ports {
			taken := slices.ContainsFunc(wanted, func(w LocalPort) bool { return int32(w.At) == port.ContainerPort })
			if taken && port.Protocol != corev1.ProtocolUDP {
				return refuse(PortTaken, "container %q listens on port %d, which the annotation %s wants for the proxy", container.Name, port.ContainerPort, AnnotationLocalPorts)
			}
		}
	}
	return Decision{}
}

// exclusions refuses what the binary that sets the rules does (package redirect): its
// pod would never start.
func exclusions(o options, c Config) Decision {
	if slices.Contains(o.excludePorts, CapturePort) {
		return refuse(WrongValue, "annotation %s: %d belongs to the proxy", AnnotationExcludePorts, CapturePort)
	}
	for _, p := range o.excludeCIDRs {
		if inIPv4 := p.Addr().Is4In6() && p.Bits() >= 96; !c.Bootstrap.IPv6 && p.Addr().Is6() && !inIPv4 {
			return refuse(WrongValue, "annotation %s: %s is IPv6, which is not redirected here", AnnotationExcludeCIDRs, p)
		}
	}
	return Decision{}
}

func names(pod *corev1.Pod, _ Mode, _ Config) Decision {
	for container := range containers(pod) {
		if container.Name == ProxyContainer || container.Name == RedirectContainer {
			return refuse(NameTaken, "the pod has a container %q of its own", container.Name)
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.Name == Volume {
			return refuse(NameTaken, "the pod has a volume %q of its own", Volume)
		}
	}
	return Decision{}
}

func ports(pod *corev1.Pod, mode Mode, _ Config) Decision {
	ours := []int32{AdminPort, StatusPort}
	if mode == Redirect {
		ours = append(ours, CapturePort)
	}
	for container := range containers(pod) {
		for _, port := range container.Ports {
			// An absent protocol is TCP.
			if port.Protocol != corev1.ProtocolUDP && slices.Contains(ours, port.ContainerPort) {
				return refuse(PortTaken, "container %q listens on port %d, which the proxy uses", container.Name, port.ContainerPort)
			}
		}
	}
	return Decision{}
}

// users: the rules tell the proxy's connections from others by its user, so those of
// a container with that user would pass by the proxy.
func users(pod *corev1.Pod, mode Mode, c Config) Decision {
	if mode != Redirect {
		return Decision{}
	}
	for container := range containers(pod) {
		var uid *int64
		if pod.Spec.SecurityContext != nil {
			uid = pod.Spec.SecurityContext.RunAsUser
		}
		if own := container.SecurityContext; own != nil && own.RunAsUser != nil {
			uid = own.RunAsUser
		}
		if uid != nil && *uid == c.UID {
			return refuse(RunsAsTheProxy, "container %q runs as user %d, which is the proxy's", container.Name, *uid)
		}
	}
	return Decision{}
}

func containers(pod *corev1.Pod) func(yield func(*corev1.Container) bool) {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}
