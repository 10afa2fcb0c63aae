// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// Verifier says whose a token is.
type Verifier interface {
	Verify(ctx context.Context, token string) (identity.Proxy, error)
}

// Cluster is what is known of pods and namespaces.
type Cluster interface {
	// Pod of a name; nil if there is none.
	Pod(namespace, name string) *corev1.Pod
	// NamespaceAnnotation is its value; empty if there is none.
	NamespaceAnnotation(namespace, annotation string) string
}

// Directory admits the proxies of pods that are there. It implements
// [serve.Directory].
type Directory struct {
	verifier  Verifier
	cluster   Cluster
	catalogue *Catalogue
	// refused is told why a proxy was not let in.
	refused func(identity.Reason)

	mu    sync.Mutex
	seats map[string]*seat // by the pod's uid
}

// seat is a pod that has streams.
type seat struct {
	ended   chan struct{}
	streams int
}

// NewDirectory makes one; refused may be nil.
func NewDirectory(verifier Verifier, cluster Cluster, catalogue *Catalogue, refused func(identity.Reason)) *Directory {
	if refused == nil {
		refused = func(identity.Reason) {}
	}
	return &Directory{verifier: verifier, cluster: cluster, catalogue: catalogue, refused: refused, seats: map[string]*seat{}}
}

// Admit implements serve.Directory.
func (d *Directory) Admit(ctx context.Context, authorization []string) (serve.Admission, error) {
	token, err := identity.Bearer(authorization)
	if err != nil {
		return serve.Admission{}, d.refuse(err)
	}
	proxy, err := d.verifier.Verify(ctx, token)
	if err != nil {
		return serve.Admission{}, d.refuse(err)
	}
	s := d.sit(proxy.PodUID) // before the pod is looked up, so that its end is not missed
	pod := d.cluster.Pod(proxy.Namespace, proxy.Pod)
	if pod == nil || string(pod.UID) != proxy.PodUID || over(pod) {
		d.stand(proxy.PodUID)
		// A new pod may come into the cache a moment later.
		return serve.Admission{}, status.Error(codes.Unavailable, "the pod of this proxy is not known here: try again")
	}
	scope := d.scope(pod)
	return serve.Admission{
		Proxy: proxy, Group: d.catalogue.Join(scope), Ended: s.ended,
		Leave: func() { d.catalogue.Leave(scope); d.stand(proxy.PodUID) },
	}, nil
}

// refuse has Envoy come back where the token may be good.
func (d *Directory) refuse(err error) error {
	d.refused(identity.ReasonOf(err))
	code := codes.Unauthenticated
	if e := (*identity.Error)(nil); errors.As(err, &e) && e.Temporary() {
		code = codes.Unavailable
	}
	return status.Error(code, err.Error())
}

// scope of a pod: its own annotation, or that of its namespace. It is read when a
// stream begins.
func (d *Directory) scope(pod *corev1.Pod) Scope {
	upstreams, own := pod.Annotations[UpstreamsAnnotation]
	if !own {
		upstreams = d.cluster.NamespaceAnnotation(pod.Namespace, UpstreamsAnnotation)
	}
	s, _ := ScopeOf(pod.Namespace, upstreams)
	return s
}

// over says that a pod has ended.
func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (d *Directory) sit(uid string) *seat {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.seats[uid]
	if s == nil {
		s = &seat{ended: make(chan struct{})}
		d.seats[uid] = s
	}
	s.streams++
	return s
}

func (d *Directory) stand(uid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.seats[uid]; s != nil {
		if s.streams--; s.streams == 0 {
			delete(d.seats, uid)
		}
	}
}

// Ended ends the streams of a pod.
func (d *Directory) Ended(uid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.seats[uid]
	if s == nil {
		return
	}
	select {
	case <-s.ended:
	default:
		close(s.ended)
	}
}
