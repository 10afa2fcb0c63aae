// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// sources are the caches of what a mesh is made of. They implement [Cluster].
type sources struct {
	cache cache.Cache
	// api answers which kinds there are.
	api discovery.DiscoveryInterface
	// live reads past the cache.
	live client.Reader
	// namespace is Plumbline's own; empty if no sequences are kept.
	namespace string
	// ipv6 is whether proxies take connections to addresses of IPv6.
	ipv6 bool
	// lease is the name of the one that whoever leads renews; empty if none is watched.
	lease string
	clock clock.WithTicker
	log   logr.Logger

	mu sync.Mutex
	// kinds of Plumbline, and whether each is cached; known is closed when it is known
	// of all which are there.
	kinds   map[string]bool
	known   chan struct{}
	decided bool

	concern concern
	numbers numbers
	orders  orders
	// grants give hosts of the gateways to namespaces.
	grants []ir.Grant
}

func newSources(config *rest.Config, namespace, lease string, ipv6 bool, clock clock.WithTicker, log logr.Logger) (*sources, error) {
	types, err := elected.Kinds()
	if err != nil {
		return nil, err
	}
	work := rest.CopyConfig(config)
	work.QPS = -1 // the API server's priority and fairness decides
	c, err := cache.New(work, cache.Options{
		Scheme: types, Mapper: mapper(), DefaultTransform: cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: true, // a kind that is not there would be waited for
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Transform: slimPod}, &corev1.Service{}: {Transform: slimService}, &corev1.Node{}: {Transform: slimNode},
			&v1alpha1.Baseline{}: {Transform: slimBaseline}, &v1alpha1.ABRelease{}: {Transform: slimRelease},
			// Of all ConfigMaps this one.
			&corev1.ConfigMap{}: {
				Namespaces: map[string]cache.Config{namespace: {}},
				Field:      fields.OneTermEqualSelector("metadata.name", release.LedgerName),
			},
			&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{namespace: {}}, Field: fields.OneTermEqualSelector("metadata.name", lease)},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	api, err := discovery.NewDiscoveryClientForConfig(work)
	if err != nil {
		return nil, fmt.Errorf("making the client of kinds: %w", err)
	}
	live, err := client.New(work, client.Options{Scheme: types, Mapper: mapper()})
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	return &sources{
		cache: c, api: api, live: live, namespace: namespace, lease: lease, ipv6: ipv6, clock: clock, log: log,
		kinds: map[string]bool{}, known: make(chan struct{}),
		numbers: newNumbers(),
	}, nil
}

// mapper knows the kinds that are cached, so that the process starts while the API
// server is away.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Service", "Pod", "ConfigMap"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Node", "Namespace"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	m.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	m.Add(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), meta.RESTScopeNamespace)
	for _, kind := range []string{"ABRelease", "Baseline"} {
		m.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	return m
}

// about reads all that a mesh has of some Services.
func (s *sources) about(ctx context.Context, names ir.Names) (in ir.Inputs, err error) {
	in.IPv6 = s.ipv6
	namespaces := map[string]bool{}
	for name := range names {
		namespaces[name.Namespace] = true
		if name.Name == "" {
			continue
		}
		if err := s.partOf(ctx, name, &in); err != nil {
			return in, err
		}
	}
	if err := s.spaces(ctx, namespaces, &in); err != nil {
		return in, err
	}
	if err := s.decisions(ctx, namespaces, &in); err != nil {
		return in, err
	}
	if err := s.owned(ctx, &in); err != nil {
		return in, err
	}
	s.sequences(ctx, names, &in)
	return in, s.places(ctx, &in)
}

// partOf reads a Service, its endpoints and the splits that name it.
func (s *sources) partOf(ctx context.Context, name apitypes.NamespacedName, in *ir.Inputs) error {
	svc := &corev1.Service{}
	there, err := s.found(ctx, name, svc)
	if err != nil {
		return err
	}
	if there {
		in.Services = append(in.Services, svc)
	}
	var slices discoveryv1.EndpointSliceList
	if err := s.list(ctx, &slices, client.InNamespace(name.Namespace), client.MatchingFields{sliceField: name.Name}); err != nil {
		return err
	}
	for i := range slices.Items {
		in.Slices = append(in.Slices, &slices.Items[i])
	}
	return s.splitsOf(ctx, name, in)
}

// spaces reads what namespaces say of their Services.
func (s *sources) spaces(ctx context.Context, namespaces map[string]bool, in *ir.Inputs) error {
	in.Grants, in.Exports, in.NamespaceLabels = s.grants, map[string]string{}, map[string]map[string]string{}
	for namespace := range namespaces {
		var n corev1.Namespace
		there, err := s.found(ctx, apitypes.NamespacedName{Name: namespace}, &n)
		if err != nil {
			return err
		}
		if export, has := n.Annotations[ir.ExportToAnnotation]; there && has {
			in.Exports[namespace] = export
		}
		if there && len(s.grants) > 0 {
			in.NamespaceLabels[namespace] = n.Labels
		}
	}
	return nil
}

// places reads the localities of the nodes that endpoints and pods are on.
func (s *sources) places(ctx context.Context, in *ir.Inputs) error {
	nodes := map[string]bool{}
	for _, slice := range in.Slices {
		for i := range slice.Endpoints {
			if node := slice.Endpoints[i].NodeName; node != nil {
				nodes[*node] = true
			}
		}
	}
	for i := range in.Pods {
		nodes[in.Pods[i].Node] = true
	}
	delete(nodes, "") // of pods that have none yet
	in.Localities = make(map[string]ir.Locality, len(nodes))
	for name := range nodes {
		var node corev1.Node
		there, err := s.found(ctx, apitypes.NamespacedName{Name: name}, &node)
		if err != nil {
			return err
		}
		if there {
			in.Localities[name] = localityOf(&node)
		}
	}
	return nil
}

func localityOf(n *corev1.Node) ir.Locality {
	return ir.Locality{Region: n.Labels[corev1.LabelTopologyRegion], Zone: n.Labels[corev1.LabelTopologyZone]}
}

// Fields of indexes: the Service of an EndpointSlice, and of a release whose split is in force.
const (
	sliceField   = "service"
	releaseField = "service"
)

func serviceOfSlice(object client.Object) []string {
	if name := object.GetLabels()[discoveryv1.LabelServiceName]; name != "" {
		return []string{name}
	}
	return nil
}

func serviceOfRelease(object client.Object) []string {
	if r, is := object.(*v1alpha1.ABRelease); is && r.Status.Effective != nil {
		return []string{r.Status.Effective.ServiceName}
	}
	return nil
}

func (s *sources) list(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := s.cache.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return fmt.Errorf("reading the cache of %T: %w", list, err)
	}
	return nil
}

// Pod implements Cluster.
func (s *sources) Pod(namespace, name string) *corev1.Pod {
	var pod corev1.Pod
	if s.cache.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, &pod) != nil {
		return nil
	}
	return &pod
}

// NamespaceAnnotation implements Cluster.
func (s *sources) NamespaceAnnotation(namespace, annotation string) string {
	var n corev1.Namespace
	if s.cache.Get(context.Background(), client.ObjectKey{Name: namespace}, &n) != nil {
		return ""
	}
	return n.Annotations[annotation]
}

// podsOf tells the verifier of tokens about pods.
type podsOf struct{ cluster Cluster }

// Pod implements identity.Pods.
func (p podsOf) Pod(namespace, name string) (uid, serviceAccount string, found bool) {
	pod := p.cluster.Pod(namespace, name)
	if pod == nil {
		return "", "", false
	}
	return string(pod.UID), pod.Spec.ServiceAccountName, true
}
