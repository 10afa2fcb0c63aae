// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
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
		{svc.Spec.SessionAffinity == corev1.ServiceAffinityClientIP, SessionAffinity, "which pod a client gets is decided by its address: set sessionAffinity to None and let a split know visitors by a cookie or header"},
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
