// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is one as it is stored: JSON, with integers as int64. Nobody changes one
// that the server has.
type Object = map[string]any

// Generation says which changes move metadata.generation.
type Generation int

// The ways of counting generations.
const (
	// NotCounted: the kind has none.
	NotCounted Generation = iota
	// OnSpec: a change of the spec.
	OnSpec
	// OnSpecOrAnnotations: as Deployments count.
	OnSpecOrAnnotations
	// OnAllButStatus: a change of anything beside metadata and status, as custom
	// resources count.
	OnAllButStatus
)

// Resource is a kind that the server has.
type Resource struct {
	Group, Version, Resource, Kind string
	Namespaced                     bool
	// Custom says that it is a custom resource: its updates need a resourceVersion,
	// and its /status keeps all metadata as it was.
	Custom bool
	// Status and Scale say which subresources it has.
	Status, Scale bool
	Generation    Generation
	// CreateOnUpdate says that a PUT makes what is not there, as for Services.
	CreateOnUpdate bool
	// Dropped objects are accepted and forgotten.
	Dropped bool
	// Mutate changes a new state before it is validated, as admission does. before
	// is nil for a creation; after may be changed in place.
	Mutate func(user string, before, after Object)
	// Validate says what is wrong with a new state; before is nil for a creation.
	Validate func(before, after Object) []metav1.StatusCause
}

func (r *Resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}
}

func (r *Resource) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

func (r *Resource) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.Group, Kind: r.Kind}
}

// Custom is a custom resource with a /status.
func Custom(group, version, resource, kind string, namespaced bool) Resource {
	return Resource{
		Group: group, Version: version, Resource: resource, Kind: kind,
		Namespaced: namespaced, Custom: true, Status: true, Generation: OnAllButStatus,
	}
}

// Builtin are the built-in kinds that a remediation meets.
func Builtin() []Resource {
	return []Resource{
		{Version: "v1", Resource: "namespaces", Kind: "Namespace", Status: true},
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets", Kind: "PodDisruptionBudget", Namespaced: true, Status: true, Generation: OnSpec},
		{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true},
		{Version: "v1", Resource: "services", Kind: "Service", Namespaced: true, Status: true, CreateOnUpdate: true},
		{Version: "v1", Resource: "events", Kind: "Event", Namespaced: true, Dropped: true},
		{Group: "events.k8s.io", Version: "v1", Resource: "events", Kind: "Event", Namespaced: true, Dropped: true},
		{Group: "coordination.k8s.io", Version: "v1", Resource: "leases", Kind: "Lease", Namespaced: true},
		{
			Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true,
			Status: true, Scale: true, Generation: OnSpecOrAnnotations, Validate: validateDeployment,
		},
		{
			Group: "apps", Version: "v1", Resource: "statefulsets", Kind: "StatefulSet", Namespaced: true,
			Status: true, Scale: true, Generation: OnSpec, Validate: validateDeployment,
		},
	}
}

// Mapper knows the kinds of the server, as discovery would tell them.
func (s *Server) Mapper() meta.RESTMapper {
	reviews := authorizationv1.SchemeGroupVersion
	versions := []schema.GroupVersion{reviews}
	for _, r := range s.order {
		versions = append(versions, r.groupVersion())
	}
	mapper := meta.NewDefaultRESTMapper(versions)
	for _, r := range s.order {
		scope := meta.RESTScopeRoot
		if r.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		gv := r.groupVersion()
		mapper.AddSpecific(gv.WithKind(r.Kind), gv.WithResource(r.Resource), gv.WithResource(r.Resource), scope)
	}
	for _, kind := range []string{"SubjectAccessReview", "SelfSubjectAccessReview"} {
		singular := strings.ToLower(kind)
		mapper.AddSpecific(reviews.WithKind(kind), reviews.WithResource(singular+"s"), reviews.WithResource(singular), meta.RESTScopeRoot)
	}
	return mapper
}
