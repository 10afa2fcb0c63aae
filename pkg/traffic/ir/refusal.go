// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// refusedKind says what of a Service a proxy would change the meaning of.
func (b *builder) refusedKind(svc *corev1.Service) bool {
	refused := []struct {
		is      bool
		reason  Reason
		message string
	}{
		{svc.Spec.Type == corev1.ServiceTypeExternalName, ExternalName, "it stands for a name outside: take the label off"},
		{svc.Spec.Type != corev1.ServiceTypeExternalName && slices.Contains(clusterIPs(svc), corev1.ClusterIPNone), Headless, "clients connect to its pods and never to it: give it a clusterIP, or take the label off"},
		{len(svc.Spec.Ports) == 0, NoPorts, "it has no ports: declare one"},
		{svc.Spec.SessionAffinity == corev1.ServiceAffinityClientIP, SessionAffinity, "the address of a client decides its pod: set sessionAffinity to None and let a split know visitors by a cookie or header"},
		{deref(svc.Spec.InternalTrafficPolicy) == corev1.ServiceInternalTrafficPolicyLocal, InternalTrafficPolicy, "requests are to stay on their node, which proxies do not know of: set internalTrafficPolicy to Cluster"},
	}
	found := false
	for _, r := range refused {
		if r.is {
			b.refuse(serviceObject(svc), r.reason, r.message)
			found = true
		}
	}
	return found
}

// warnOfZones names a wish for endpoints nearby that proxies do not follow. It is a preference,
// so that the Service stays in the mesh.
func (b *builder) warnOfZones(svc *corev1.Service) {
	var wish, mend string
	mode := svc.Annotations[corev1.AnnotationTopologyMode]
	switch {
	case svc.Spec.TrafficDistribution != nil:
		wish, mend = "trafficDistribution "+short(*svc.Spec.TrafficDistribution), "take the field out"
	case mode != "" && !strings.EqualFold(mode, "Disabled"):
		wish, mend = corev1.AnnotationTopologyMode+" "+short(mode), "take the annotation out"
	default:
		return
	}
	b.warn(serviceObject(svc), TrafficDistribution, fmt.Sprintf("proxies do not follow its %s, and send requests to endpoints of all zones: %s, or take the Service out of the mesh", wish, mend))
}

// warnOfIPv6 names an address of a Service at which its split is not followed.
func (b *builder) warnOfIPv6(s Service, split traffic.Split) {
	i := slices.IndexFunc(s.Addresses, netip.Addr.Is6)
	if b.in.IPv6 || i < 0 {
		return
	}
	b.warn(objectOf(split), IPv6NotSplit, fmt.Sprintf(
		"proxies take no connections to IPv6, so clients that connect to %s of Service %s bypass the split. Set mesh.inject.ipv6 and restart the clients, or give the Service IPv4 alone", s.Addresses[i], s.Name))
}

// protocol of a port; one that contradicts itself is left alone.
func (b *builder) protocol(svc *corev1.Service, p corev1.ServicePort) Protocol {
	if contradicts(p) {
		b.problems = append(b.problems, Problem{
			Object: serviceObject(svc), Port: uint16(p.Port), Reason: TLSOnHTTPPort, Refused: true, //nolint:gosec // the API server admits 1 to 65535
			Message: fmt.Sprintf("its name %q and its appProtocol %q declare both HTTP and TLS, and a TLS client would get an error: let both say the same", p.Name, deref(p.AppProtocol)),
		})
		return TCP
	}
	return ProtocolOf(p)
}
