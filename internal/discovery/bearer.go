// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

const (
	// addressWait is how long a proxy waits for the address of its pod: a kubelet starts
	// the sidecar about a second before the API server knows the address.
	addressWait = 5 * time.Second
	// addressEvery is how often the cache is asked meanwhile.
	addressEvery = 50 * time.Millisecond
)

// find the pod of a proxy, which has to be one that may have a proxy, and from which the
// connection comes.
func (d *Directory) find(ctx context.Context, proxy identity.Proxy) (*corev1.Pod, error) {
	pod := d.running(proxy)
	if pod != nil && !d.isProxy(pod) {
		return nil, d.refuse(identity.Refuse(identity.ReasonNoProxy, nil))
	}
	if pod != nil && !d.AnyAddress {
		pod = d.awaitAddress(ctx, proxy, pod)
	}
	if pod == nil { // a new pod may come into the cache a moment later
		return nil, status.Error(codes.Unavailable, "the pod of this proxy is not known here: try again")
	}
	if d.AnyAddress {
		return pod, nil
	}
	if err := comesFrom(ctx, pod); err != nil {
		return nil, d.refuse(err)
	}
	return pod, nil
}

// running is the pod of a proxy; nil if the cache does not have it, or it has ended.
func (d *Directory) running(proxy identity.Proxy) *corev1.Pod {
	pod := d.cluster.Pod(proxy.Namespace, proxy.Pod)
	if pod == nil || string(pod.UID) != proxy.PodUID || over(pod) {
		return nil
	}
	return pod
}

// isGateway says that a pod is a gateway's: its account says so, and no label.
func (d *Directory) isGateway(pod *corev1.Pod) bool {
	return d.Gateways != Account{} && d.Gateways == Account{pod.Namespace, pod.Spec.ServiceAccountName}
}

// isProxy says that a pod has a proxy: it was injected, or is a gateway.
func (d *Directory) isProxy(pod *corev1.Pod) bool { return d.isGateway(pod) || inject.Injected(pod) }

// awaitAddress waits until the cache has an address of a pod.
func (d *Directory) awaitAddress(ctx context.Context, proxy identity.Proxy, pod *corev1.Pod) *corev1.Pod {
	if len(pod.Status.PodIPs) > 0 || d.AddressWait == 0 {
		return pod
	}
	ctx, cancel := context.WithTimeout(ctx, d.AddressWait)
	defer cancel()
	ticker := time.NewTicker(addressEvery)
	defer ticker.Stop()
	for pod != nil && len(pod.Status.PodIPs) == 0 {
		select {
		case <-ticker.C:
			pod = d.running(proxy)
		case <-ctx.Done():
			return pod
		}
	}
	return pod
}

// comesFrom is an error unless the other end of a connection has an address of a pod.
func comesFrom(ctx context.Context, pod *corev1.Pod) error {
	if len(pod.Status.PodIPs) == 0 {
		return identity.Refuse(identity.ReasonNoAddress, nil)
	}
	end, known := peer.FromContext(ctx)
	if !known {
		return identity.Refuse(identity.ReasonAddress, nil)
	}
	from, err := netip.ParseAddrPort(end.Addr.String())
	if err != nil {
		return identity.Refuse(identity.ReasonAddress, fmt.Errorf("reading the address of the connection: %w", err))
	}
	if slices.ContainsFunc(pod.Status.PodIPs, func(of corev1.PodIP) bool { return same(of.IP, from.Addr()) }) {
		return nil
	}
	return identity.Refuse(identity.ReasonAddress, fmt.Errorf("the connection comes from %s; see the value xds.verifyProxyAddress", plain(from.Addr())))
}

// same says that a text is an address.
func same(text string, address netip.Addr) bool {
	of, err := netip.ParseAddr(text)
	return err == nil && plain(of) == plain(address)
}

// plain is an address without what one listener adds and another one does not: a server
// of both families sees 10.0.0.1 as ::ffff:10.0.0.1.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
