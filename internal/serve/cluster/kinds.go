// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Cached are the kinds of the shared cache, as empty objects. BaselineRevisions are not among them: these hold whole objects
// of users.
func Cached() []client.Object {
	return []client.Object{
		&v1alpha1.ABRelease{}, &v1alpha1.Baseline{}, &v1alpha1.ClusterSpecGuard{}, &v1alpha1.EffectivenessAssessment{}, &v1alpha1.Environment{},
		&v1alpha1.GuardDefaults{}, &v1alpha1.ReleaseWork{}, &v1alpha1.RemediationLedger{}, &v1alpha1.RemediationPlan{}, &v1alpha1.RemediationPolicy{},
		&v1alpha1.RemediationRequest{}, &v1alpha1.RolloutStrategy{}, &v1alpha1.SpecGuard{}, &v1alpha1.SpecGuardException{},
	}
}

// kind is that of an object or a list.
type kind struct {
	resource   schema.GroupResource
	namespaced bool
	cached     bool
}

// kindOf finds the kind of an object, or of the objects of a list. The error of a kind that the API server does not serve
// is meta.NoKindMatchError.
func (c *Cluster) kindOf(o runtime.Object) (kind, error) {
	gvk, err := apiutil.GVKForObject(o, c.Scheme())
	if err != nil {
		return kind{}, fmt.Errorf("finding a kind: %w", err)
	}
	if meta.IsListType(o) {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return kind{}, err
	}
	return kind{
		resource: mapping.Resource.GroupResource(), namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace, cached: c.cached[gvk],
	}, nil
}
