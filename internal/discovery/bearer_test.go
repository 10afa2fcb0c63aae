// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// podAddress is that of each pod with a proxy here.
var podAddress = netip.MustParseAddr("10.9.0.7")

// proxied gives a pod a proxy and the address.
func proxied(pod *corev1.Pod) *corev1.Pod {
	if pod.Labels[inject.LabelProxy] == "" {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, inject.LabelProxy, string(inject.Redirect))
	}
	pod.Spec.InitContainers = []corev1.Container{{Name: inject.ProxyContainer, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
	pod.Status.PodIPs = []corev1.PodIP{{IP: podAddress.String()}}
	return pod
}

// from is the context of a stream whose other end has an address.
func from(t *testing.T, end net.Addr) context.Context {
	t.Helper()
	return peer.NewContext(t.Context(), &peer.Peer{Addr: end})
}

func fromPod(t *testing.T) context.Context {
	t.Helper()
	return from(t, net.TCPAddrFromAddrPort(netip.AddrPortFrom(podAddress, 40_000)))
}

// Finding L7: a token was good from any address.
func TestATokenIsGoodFromAnAddressOfItsPodAlone(t *testing.T) {
	tcp := func(address string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)) }
	const theirs = "it was shown from an address outside its pod"
	tests := map[string]struct {
		pod  []string
		end  net.Addr
		any  bool
		want codes.Code
		text string
	}{
		"the address":                            {[]string{"10.0.0.1"}, tcp("10.0.0.1:4711"), false, codes.OK, ""},
		"either one of two families":             {[]string{"10.0.0.1", "fd00::1"}, tcp("[fd00::1]:4711"), false, codes.OK, ""},
		"IPv4 at a server of both families":      {[]string{"10.0.0.1"}, tcp("[::ffff:10.0.0.1]:4711"), false, codes.OK, ""},
		"IPv6 that is written otherwise":         {[]string{"fd00:0:0::1"}, tcp("[fd00::1]:4711"), false, codes.OK, ""},
		"not the address of another pod":         {[]string{"10.0.0.1"}, tcp("10.0.0.2:4711"), false, codes.Unauthenticated, "the connection comes from 10.0.0.2"},
		"not IPv4 that only looks like it":       {[]string{"10.0.0.1"}, tcp("[::10.0.0.1]:4711"), false, codes.Unauthenticated, theirs},
		"not an end without an address":          {[]string{"10.0.0.1"}, &net.UnixAddr{Name: "pipe"}, false, codes.Unauthenticated, theirs},
		"not an end of which nothing is known":   {[]string{"10.0.0.1"}, nil, false, codes.Unauthenticated, theirs},
		"not before the address is known":        {nil, tcp("10.0.0.1:4711"), false, codes.Unavailable, "the address of its pod is not known yet"},
		"not an address that nobody can read":    {[]string{"pod"}, tcp("10.0.0.1:4711"), false, codes.Unauthenticated, theirs},
		"any address where addresses are hidden": {[]string{"10.0.0.1"}, tcp("10.0.0.2:4711"), true, codes.OK, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			known := web("1", corev1.PodRunning)
			pod := known.pods["shop/web"]
			pod.Status.PodIPs = nil
			for _, ip := range tc.pod {
				pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: ip})
			}
			d := NewDirectory(believer{}, known, NewCatalog(serve.NewProofs()), nil)
			d.AnyAddress = tc.any
			ctx := t.Context()
			if tc.end != nil {
				ctx = from(t, tc.end)
			}
			_, err := d.Admit(ctx, []string{"Bearer 1"})
			if status.Code(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.text) {
				t.Errorf("got %v, want %v %q", err, tc.want, tc.text)
			}
			if (len(d.seats) == 0) != (err != nil) {
				t.Errorf("%d pods have streams", len(d.seats))
			}
		})
	}
}

// Finding H2: every pod with a service account was served.
func TestOnlyAPodWithTheLabelAndTheSidecarIsAProxy(t *testing.T) {
	once := func(p *corev1.Pod) { p.Spec.InitContainers[0].RestartPolicy = nil }
	tests := map[string]struct {
		change func(*corev1.Pod)
		want   codes.Code
	}{
		"both":                             {func(*corev1.Pod) {}, codes.OK},
		"not the label alone":              {func(p *corev1.Pod) { p.Spec.InitContainers = nil }, codes.Unauthenticated},
		"not the sidecar alone":            {func(p *corev1.Pod) { p.Labels = nil }, codes.Unauthenticated},
		"not a container that runs once":   {once, codes.Unauthenticated},
		"not the label of gateways":        {func(p *corev1.Pod) { p.Labels = map[string]string{inject.LabelProxy: inject.Gateway} }, codes.Unauthenticated},
		"a gateway by its service account": {func(p *corev1.Pod) { p.Labels, p.Spec = nil, corev1.PodSpec{ServiceAccountName: "gateway"} }, codes.OK},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			known := web("1", corev1.PodRunning)
			tc.change(known.pods["shop/web"])
			var refused []identity.Reason
			d := NewDirectory(believer{}, known, NewCatalog(serve.NewProofs()), func(why identity.Reason) { refused = append(refused, why) })
			d.Gateways = Account{"shop", "gateway"}
			_, err := d.Admit(fromPod(t), []string{"Bearer 1"})
			if status.Code(err) != tc.want {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if err != nil && (len(refused) != 1 || refused[0] != identity.ReasonNoProxy) {
				t.Errorf("it is counted as %q", refused)
			}
		})
	}
}

// starting is a cluster in which a pod has an address from the third question on.
type starting struct {
	*cluster
	asked int
}

func (s *starting) Pod(namespace, name string) *corev1.Pod {
	pod := s.cluster.Pod(namespace, name).DeepCopy()
	if s.asked++; s.asked < 3 {
		pod.Status.PodIPs = nil
	}
	return pod
}

// A kubelet starts the sidecar before the API server knows the address of its pod.
func TestAProxyWaitsForTheAddressOfItsPod(t *testing.T) {
	d := NewDirectory(believer{}, &starting{cluster: web("1", corev1.PodPending)}, NewCatalog(serve.NewProofs()), nil)
	d.AddressWait = addressWait
	if _, err := d.Admit(fromPod(t), []string{"Bearer 1"}); err != nil {
		t.Error(err)
	}
}
