// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// source reads the objects of one collection.
type source[T client.Object] struct {
	// kind names the objects in problems.
	kind string
	// withNamespaces has the objects shown with the uid of their namespace, and with the Environment
	// that the namespace belongs to.
	withNamespaces bool
	// all reads the objects of a namespace, or of all where none is named.
	all func(ctx context.Context, c Cluster, namespace string) ([]T, error)
	// named reads one object by the name that a path has in place of a uid.
	named func(ctx context.Context, c Cluster, name string) (T, error)
}

// uidForm is that of ids. A name of this form is taken for an id first.
var uidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// byID marks the reads by which an object is found by its uid.
type byID struct{}

// IsByID tells whether a read looks for an object by its uid. A [Cluster] that knows the rights of the caller answers it with the
// objects that the caller may read, and with no refusal: a caller without the right learns no fact from a uid.
func IsByID(ctx context.Context) bool { return ctx.Value(byID{}) != nil }

// one reads an object by its uid, or by its name.
func (s *source[T]) one(ctx context.Context, c Cluster, id string) (T, error) {
	if uidForm.MatchString(id) {
		ctx = context.WithValue(ctx, byID{}, true)
		all, err := s.all(ctx, c, "")
		if err != nil {
			var none T
			return none, err
		}
		for _, object := range all {
			if string(object.GetUID()) == id {
				return object, nil
			}
		}
	}
	return s.named(ctx, c, id)
}

// clusterScoped is a collection of objects without a namespace.
func clusterScoped[T client.Object](kind string, list func() client.ObjectList, object func() T) source[T] {
	return source[T]{
		kind: kind,
		all: func(ctx context.Context, c Cluster, _ string) ([]T, error) {
			return ReadAll[T](ctx, c, kind, list, "")
		},
		named: func(ctx context.Context, c Cluster, name string) (T, error) {
			if !isName(name) {
				var none T
				return none, notFound(kind)
			}
			return ReadOne(ctx, c, kind, object(), "", name)
		},
	}
}

// isName tells whether the API server can have an object of this name. Paths of its own have no others.
func isName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// namespaced is a collection of objects that paths name as NAMESPACE.NAME: a namespace has no dot.
func namespaced[T client.Object](kind string, list func() client.ObjectList, object func() T) source[T] {
	return source[T]{
		kind: kind,
		all: func(ctx context.Context, c Cluster, namespace string) ([]T, error) {
			return ReadAll[T](ctx, c, kind, list, namespace)
		},
		named: func(ctx context.Context, c Cluster, name string) (T, error) {
			namespace, name, found := strings.Cut(name, ".")
			if !found || !isName(namespace) || !isName(name) {
				var none T
				return none, notFound(kind)
			}
			return ReadOne(ctx, c, kind, object(), namespace, name)
		},
	}
}

var (
	policies = clusterScoped("RemediationPolicy", func() client.ObjectList { return &v1alpha1.RemediationPolicyList{} },
		func() *v1alpha1.RemediationPolicy { return &v1alpha1.RemediationPolicy{} })
	plans = namespaced("RemediationPlan", func() client.ObjectList { return &v1alpha1.RemediationPlanList{} },
		func() *v1alpha1.RemediationPlan { return &v1alpha1.RemediationPlan{} })
	releases = func() source[*v1alpha1.ABRelease] {
		s := namespaced("ABRelease", func() client.ObjectList { return &v1alpha1.ABReleaseList{} },
			func() *v1alpha1.ABRelease { return &v1alpha1.ABRelease{} })
		s.withNamespaces = true
		return s
	}()
	strategies = clusterScoped("RolloutStrategy", func() client.ObjectList { return &v1alpha1.RolloutStrategyList{} },
		func() *v1alpha1.RolloutStrategy { return &v1alpha1.RolloutStrategy{} })
	baselines = namespaced("Baseline", func() client.ObjectList { return &v1alpha1.BaselineList{} },
		func() *v1alpha1.Baseline { return &v1alpha1.Baseline{} })
	environments = clusterScoped("Environment", func() client.ObjectList { return &v1alpha1.EnvironmentList{} },
		func() *v1alpha1.Environment { return &v1alpha1.Environment{} })
	assessments = namespaced("EffectivenessAssessment", func() client.ObjectList { return &v1alpha1.EffectivenessAssessmentList{} },
		func() *v1alpha1.EffectivenessAssessment { return &v1alpha1.EffectivenessAssessment{} })
	requests = namespaced("RemediationRequest", func() client.ObjectList { return &v1alpha1.RemediationRequestList{} },
		func() *v1alpha1.RemediationRequest { return &v1alpha1.RemediationRequest{} })
	ledgers = namespaced("RemediationLedger", func() client.ObjectList { return &v1alpha1.RemediationLedgerList{} },
		func() *v1alpha1.RemediationLedger { return &v1alpha1.RemediationLedger{} })
	specGuards = namespaced("SpecGuard", func() client.ObjectList { return &v1alpha1.SpecGuardList{} },
		func() *v1alpha1.SpecGuard { return &v1alpha1.SpecGuard{} })
	clusterGuards = clusterScoped("ClusterSpecGuard", func() client.ObjectList { return &v1alpha1.ClusterSpecGuardList{} },
		func() *v1alpha1.ClusterSpecGuard { return &v1alpha1.ClusterSpecGuard{} })
	// guards are of both kinds. A list of one namespace has the guards of that namespace alone.
	guards = source[client.Object]{kind: "SpecGuard", all: allGuards, named: namedGuard}
)

func allGuards(ctx context.Context, c Cluster, namespace string) ([]client.Object, error) {
	var all []client.Object
	own, err := specGuards.all(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	for _, g := range own {
		all = append(all, g)
	}
	if namespace != "" {
		return all, nil
	}
	ofCluster, err := clusterGuards.all(ctx, c, "")
	for _, g := range ofCluster {
		all = append(all, g)
	}
	return all, err
}

// namedGuard looks for NAMESPACE.NAME first: the name of a ClusterSpecGuard may have dots as well.
func namedGuard(ctx context.Context, c Cluster, name string) (client.Object, error) {
	own, err := specGuards.named(ctx, c, name)
	if err == nil {
		return own, nil
	}
	if !isNotFound(err) {
		return nil, err
	}
	return clusterGuards.named(ctx, c, name)
}
