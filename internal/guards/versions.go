// SPDX-License-Identifier: Apache-2.0

package guards

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// judged is the one version in which the objects of a kind are read and judged.
type judged struct {
	kube.Resource
	// registered: the installation registers this version; otherwise a guard chose it.
	registered bool
}

// named are the kinds that one guard names.
type named struct {
	ref       specguard.GuardRef
	created   time.Time
	resources []specguard.NamedResource
}

// byPrecedence are the guards in the order in which they choose the version of a kind
// that the installation does not register: ClusterSpecGuards first, then the oldest.
func (in *Input) byPrecedence() []named {
	guards := make([]named, 0, len(in.Guards)+len(in.ClusterGuards))
	for i := range in.Guards {
		g := &in.Guards[i]
		guards = append(guards, named{refOf(g), g.CreationTimestamp.Time, specguard.ListResources(&g.Spec)})
	}
	for i := range in.ClusterGuards {
		g := &in.ClusterGuards[i]
		guards = append(guards, named{specguard.GuardRef{Name: g.Name}, g.CreationTimestamp.Time, specguard.ListResources(&g.Spec.GuardSpec)})
	}
	slices.SortStableFunc(guards, func(a, b named) int {
		if platform := (a.ref.Namespace == ""); platform != (b.ref.Namespace == "") {
			if platform {
				return -1
			}
			return 1
		}
		return cmp.Or(a.created.Compare(b.created), strings.Compare(a.ref.Namespace, b.ref.Namespace), strings.Compare(a.ref.Name, b.ref.Name))
	})
	return guards
}

// resolve finds where the kinds of the guards are served, and in which version each is
// judged.
func (s *Snapshot) resolve(in Input, mapper meta.RESTMapper) error {
	var failed []error
	for _, g := range in.byPrecedence() {
		if len(s.Problems[g.ref]) == 0 { // else inert as a whole
			failed = append(failed, s.resolveGuard(g, in.Registered, mapper))
		}
	}
	return errors.Join(failed...)
}

func (s *Snapshot) resolveGuard(g named, registered []schema.GroupVersionResource, mapper meta.RESTMapper) error {
	for _, r := range g.resources {
		gvk := schema.GroupVersionKind(canon.ParseGVK(r.APIVersion, r.Kind))
		kind, decided := s.kinds[gvk.GroupKind()]
		if !decided {
			var err error
			kind, err = findVersion(mapper, gvk, registered)
			switch {
			case err == nil:
				s.kinds[gvk.GroupKind()] = kind
				s.Resources[kind.GVK] = kind.Resource
			case kube.IsHopeless(err), isUnanswered(err):
				s.Problems[g.ref] = append(s.Problems[g.ref], Problem{Path: pathOfKind(r), Err: err})
				s.Again = s.Again || errors.Is(err, kube.ErrUnknownKind) || isUnanswered(err)
				continue
			default:
				return fmt.Errorf("guard %s: %w", g.ref, err)
			}
		}
		if r.Category == "" && kind.GVK.Version != gvk.Version {
			s.OtherVersions[g.ref] = append(s.OtherVersions[g.ref], Problem{Path: r.Path.Child("apiVersion").String(), Err: kind.otherThan(gvk)})
		}
	}
	return nil
}

// pathOfKind returns the field that names the kind.
func pathOfKind(r specguard.NamedResource) string {
	if r.Category != "" {
		return r.Path.String()
	}
	return r.Path.Child("kind").String()
}

// isUnanswered tells whether the API server could not tell a kind that it did not serve
// when it last told its kinds: only the guards that name that kind wait for the answer.
func isUnanswered(err error) bool {
	return errors.Is(err, kube.ErrGroupUnavailable) || errors.Is(err, kube.ErrKindsNotListed)
}

// findVersion finds the version in which a kind is judged: the registered one, whatever
// version a guard names.
func findVersion(mapper meta.RESTMapper, gvk schema.GroupVersionKind, registered []schema.GroupVersionResource) (judged, error) {
	for _, r := range registered {
		if r.Group != gvk.Group {
			continue
		}
		resource, err := kube.Resolve(mapper, gvk.GroupKind().WithVersion(r.Version))
		switch {
		case err == nil && resource.Plural == r.Resource:
			return judged{resource, true}, nil
		case err != nil && !kube.IsHopeless(err) && !errors.Is(err, kube.ErrKindsNotListed):
			return judged{}, err
		}
	}
	resource, err := kube.Resolve(mapper, gvk)
	return judged{resource, false}, err
}

func (j judged) otherThan(gvk schema.GroupVersionKind) error {
	why := "which another guard names"
	if j.registered {
		why = "which the installation registers (chart value guard.resources)"
	}
	return fmt.Errorf("%s is judged as %s, %s, and not as %s; name that version, and write paths as it has them", gvk.Kind, j.GVK.GroupVersion(), why, gvk.GroupVersion())
}

// FindJudgedVersion says in which version the objects of a kind that a guard names are judged, and
// where they are served; ok is false if that is not known.
func (s *Snapshot) FindJudgedVersion(r v1alpha1.GuardedResource) (resource kube.Resource, ok bool) {
	kind, ok := s.kinds[schema.GroupVersionKind(canon.ParseGVK(r.APIVersion, r.Kind)).GroupKind()]
	return kind.Resource, ok
}

// Registered is how a kind is called where resources are registered, as
// group/plural; ok is false if it is not known where the kind is served.
func (s *Snapshot) Registered(r v1alpha1.GuardedResource) (name string, ok bool) {
	resource, ok := s.FindJudgedVersion(r)
	return resource.GVK.Group + "/" + resource.Plural, ok
}
