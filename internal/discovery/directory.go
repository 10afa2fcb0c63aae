// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Verifier names the pod of a token.
type Verifier interface {
	Verify(ctx context.Context, token string) (identity.Proxy, error)
}

// Cluster has the known pods and namespaces.
type Cluster interface {
	// Pod of a name; nil without one.
	Pod(namespace, name string) *corev1.Pod
	// NamespaceAnnotation is the value of the annotation; empty without one.
	NamespaceAnnotation(namespace, annotation string) string
}

// Directory admits the proxies of pods that are there. It implements
// [serve.Directory].
type Directory struct {
	verifier Verifier
	cluster  Cluster
	catalog  *Catalog
	// refused is told why a proxy was not let in.
	refused func(identity.Reason)
	// Gateways names the account of the pods that are gateways. A label alone makes no
	// gateway: any user may set a label, and a gateway sees Services of all namespaces.
	Gateways Account
	// AnyAddress admits a token from any address, and not from its pod's alone.
	AnyAddress bool
	// AddressWait is how long a proxy of a pod without an address waits.
	AddressWait time.Duration
	// Misread takes the parts of a pod's annotations that are not valid; may be nil.
	Misread func(pod *corev1.Pod, wrong []string)
	// Unexported is told which Services a pod asks for without consent; may be nil.
	Unexported func(pod *corev1.Pod, problems []ir.Problem)

	mu    sync.Mutex
	seats map[string]*seat // by the pod's uid
}

// Account is a service account; the zero Account belongs to no pod.
type Account struct{ Namespace, Name string }

// seat is a pod that has streams.
type seat struct {
	ended   context.Context
	end     context.CancelFunc
	streams int
}

// NewDirectory makes one; refused may be nil.
func NewDirectory(verifier Verifier, cluster Cluster, catalog *Catalog, refused func(identity.Reason)) *Directory {
	if refused == nil {
		refused = func(identity.Reason) {}
	}
	return &Directory{verifier: verifier, cluster: cluster, catalog: catalog, refused: refused, seats: map[string]*seat{}}
}

// Admit implements serve.Directory.
func (d *Directory) Admit(ctx context.Context, authorization []string) (serve.Admission, error) {
	return d.admit(ctx, authorization, true)
}

// admit tells the wrong parts of a pod's annotations for a stream of routes alone.
func (d *Directory) admit(ctx context.Context, authorization []string, routes bool) (serve.Admission, error) {
	token, err := identity.Bearer(authorization)
	if err != nil {
		return serve.Admission{}, d.refuse(err)
	}
	proxy, err := d.verifier.Verify(ctx, token)
	if err != nil {
		return serve.Admission{}, d.refuse(err)
	}
	s := d.sit(proxy.PodUID) // before the pod is looked up, so that its end is not missed
	pod, err := d.find(ctx, proxy)
	if err != nil {
		d.stand(proxy.PodUID, s)
		return serve.Admission{}, err
	}
	scope, wrong := d.scope(pod)
	group := d.catalog.Join(scope)
	scope = d.catalog.shared(scope)
	if routes {
		d.tell(pod, wrong, d.catalog.Unserved(scope))
	}
	return serve.Admission{
		Proxy: proxy, Gateway: scope.face == gateway, Group: group, Ended: s.ended,
		Leave:    func() { d.catalog.Leave(scope); d.stand(proxy.PodUID, s) },
		Unserved: func() []string { return append(slices.Clone(wrong), textsOf(d.catalog.Unserved(scope))...) },
	}, nil
}

// tell reports the parts of a pod's request that the pod cannot have.
func (d *Directory) tell(pod *corev1.Pod, wrong []string, problems []ir.Problem) {
	if all := append(slices.Clone(wrong), textsOf(problems)...); len(all) > 0 && d.Misread != nil {
		d.Misread(pod, all)
	}
	problems = slices.DeleteFunc(problems, func(p ir.Problem) bool { return p.Reason != NotExported })
	if len(problems) > 0 && d.Unexported != nil {
		d.Unexported(pod, problems)
	}
}

func textsOf(problems []ir.Problem) (texts []string) {
	for _, p := range problems {
		texts = append(texts, p.String())
	}
	return texts
}

func (d *Directory) refuse(err error) error {
	d.refused(identity.ReasonOf(err))
	return statusOf(err)
}

// statusOf has a refused proxy come back where the token may be good.
func statusOf(err error) error {
	code := codes.Unauthenticated
	if e := (*identity.Error)(nil); errors.As(err, &e) && e.Temporary() {
		code = codes.Unavailable
	}
	return status.Error(code, err.Error())
}

// scope of a pod: that of its account for a gateway, else that of its annotation, else
// that of its namespace. A stream reads its scope when it begins.
func (d *Directory) scope(pod *corev1.Pod) (s Scope, wrong []string) {
	switch {
	case d.isGateway(pod):
		return GatewayScope(pod.DeletionTimestamp != nil), nil
	case pod.Labels[inject.LabelProxy] == string(inject.Explicit):
		return ExplicitScope(pod.Namespace, d.annotation(pod, inject.AnnotationLocalPorts))
	default:
		return ScopeOf(pod.Namespace, d.annotation(pod, UpstreamsAnnotation))
	}
}

// annotation of a pod, or of its namespace for all pods without one.
func (d *Directory) annotation(pod *corev1.Pod, name string) string {
	if value, own := pod.Annotations[name]; own {
		return value
	}
	return d.cluster.NamespaceAnnotation(pod.Namespace, name)
}

// leaves tells that a gateway begins to end. Its stream ends, so that the next one is
// that of a leaving gateway. The label suffices here: it grants no Service to a pod.
func leaves(before, after *corev1.Pod) bool {
	return before.DeletionTimestamp == nil && after.DeletionTimestamp != nil && after.Labels[inject.LabelProxy] == inject.Gateway
}

// over says that a pod has ended.
func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// sit takes a seat; another one than that of streams that have to end.
func (d *Directory) sit(uid string) *seat {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.seats[uid]
	if s == nil || s.over() {
		s = &seat{}
		s.ended, s.end = context.WithCancel(context.Background()) // which outlives the stream that comes first
		d.seats[uid] = s
	}
	s.streams++
	return s
}

func (d *Directory) stand(uid string, s *seat) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.streams--; s.streams == 0 && d.seats[uid] == s {
		delete(d.seats, uid)
	}
}

// over says that its streams have to end.
func (s *seat) over() bool { return s.ended.Err() != nil }

// Ended ends the streams of a pod.
func (d *Directory) Ended(uid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.seats[uid]; s != nil {
		s.end()
	}
}
