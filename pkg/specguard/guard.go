// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

// GuardRef names a guard; without a namespace it is a ClusterSpecGuard.
type GuardRef struct {
	Namespace, Name string
}

// String is the form that stands in Baseline.status.guards.
func (r GuardRef) String() string {
	if r.Namespace == "" {
		return clusterGuardPrefix + r.Name
	}
	return "SpecGuard/" + r.Name
}

// ParseGuardRef reads a name in the form of [GuardRef.String], which stands in a Baseline
// of a namespace.
func ParseGuardRef(name, namespace string) GuardRef {
	if own, cluster := strings.CutPrefix(name, clusterGuardPrefix); cluster {
		return GuardRef{Name: own}
	}
	_, own, _ := strings.Cut(name, "/")
	return GuardRef{Namespace: namespace, Name: own}
}

// clusterGuardPrefix begins the name of a ClusterSpecGuard in Baseline.status.guards.
const clusterGuardPrefix = "ClusterSpecGuard/"

// DecidingOnRepair selects, from the guards of a Baseline, the guards whose suspension
// holds repairs: the ClusterSpecGuards, if there are any.
func DecidingOnRepair(guards []string) []string {
	platform := slices.DeleteFunc(slices.Clone(guards), func(name string) bool { return !strings.HasPrefix(name, clusterGuardPrefix) })
	if len(platform) > 0 {
		return platform
	}
	return guards
}

// Guard is a guard made ready for use; immutable.
type Guard struct {
	ref        GuardRef
	uid        string
	createdAt  time.Time
	resources  []canon.GVK
	namespaces labels.Selector // nil: all, for a cluster guard
	selector   labels.Selector // nil: every object
	mode       v1alpha1.GuardMode
	trusted    writers
	acceptBy   *acceptors // nil: each user with the right
	twoPersons bool       // the writer of a change does not accept it
	exceptions bool       // of tenants apply to a cluster guard
	expected   []expectedRule
	ignore     []canon.Path
	// excluded is ignore and the benign paths, ready for hashing: with a single
	// guard, the usual case, nothing is allocated per object.
	excluded             []canon.Path
	checks               resync.Guard
	authenticatedDeletes bool
	suspendedUntil       time.Time
	// inert: the guard did not compile, and only vetoes, see [CompileInert].
	inert bool
}

type expectedRule struct {
	name    string
	writers writers
	paths   []canon.Path
}

// WithUID returns the guard with its uid, because a new guard of the same name is
// another guard. A guard without a uid keeps no object whose labels change.
func (g *Guard) WithUID(uid types.UID) *Guard {
	known := *g
	known.uid = string(uid)
	return &known
}

// Resources are the kinds it guards, in the versions in which they are read.
func (g *Guard) Resources() []canon.GVK { return slices.Clone(g.resources) }

func (g *Guard) suspended(now time.Time) bool { return g.suspendedUntil.After(now) }

// Compile makes a guard ready for use. namespaceSelector counts only for a
// cluster guard. The errors carry the path of the field from the guard's root;
// a guard with errors is nil and therefore inert.
func Compile(ref GuardRef, spec v1alpha1.GuardSpec, namespaceSelector *metav1.LabelSelector, createdAt time.Time) (*Guard, field.ErrorList) {
	path := field.NewPath("spec")
	g := &Guard{ref: ref, createdAt: createdAt, mode: spec.Mode, checks: resync.GuardOf(ref.String(), &spec)}
	g.authenticatedDeletes = spec.AuthenticatedDeletes == v1alpha1.AuthenticatedDeletesRequired
	if spec.Suspend != nil {
		g.suspendedUntil = spec.Suspend.EndTime.Time
	}
	var errs, more field.ErrorList
	g.resources, errs = compileResources(&spec)
	errs = append(errs, compileCategories(spec.Categories, path.Child("categories"))...)
	g.selector, more = compileSelector(spec.Selector, path.Child("selector"))
	errs = append(errs, more...)
	if ref.Namespace == "" {
		g.namespaces, more = compileSelector(namespaceSelector, path.Child("namespaceSelector"))
		errs = append(errs, more...)
	}
	g.trusted, more = compileWriters(spec.TrustedWriters, path.Child("trustedWriters"))
	errs = append(errs, more...)
	g.expected, more = compileExpected(spec.ExpectedWriters, path.Child("expectedWriters"))
	errs = append(errs, more...)
	g.ignore, more = compilePaths(spec.Ignore, path.Child("ignore"))
	errs = append(errs, more...)
	errs = append(errs, compileEnums(ref, spec, path)...)
	if len(errs) > 0 {
		return nil, errs
	}
	g.excluded = append(slices.Clip(slices.Clone(g.ignore)), benignPaths...)
	return g, nil
}

// CompileInert makes what is left of a guard that does not compile: the guard selects
// what the parts that compile select, guards nothing, and vetoes that anything there
// is authorized or imported. A selector that does not compile selects everything.
func CompileInert(ref GuardRef, spec v1alpha1.GuardSpec, namespaceSelector *metav1.LabelSelector, createdAt time.Time) *Guard {
	g := &Guard{ref: ref, createdAt: createdAt, inert: true}
	for _, r := range ListResources(&spec) {
		g.resources = append(g.resources, canon.ParseGVK(r.APIVersion, r.Kind))
	}
	path := field.NewPath("spec")
	g.selector, _ = compileSelector(spec.Selector, path)
	if ref.Namespace == "" {
		g.namespaces, _ = compileSelector(namespaceSelector, path)
	}
	return g
}

// vetoes tells whether the guard guards nothing at a time, and yet has a say in what
// is authorized: what the rest of the guards authorize stays authorized when this
// guard is in force again.
func (g *Guard) vetoes(now time.Time) bool { return g.inert || g.suspended(now) }

func compileEnums(ref GuardRef, spec v1alpha1.GuardSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, compileMode(ref, spec, path)...)
	switch spec.ManagementPolicy {
	case "", v1alpha1.Managed, v1alpha1.Unmanaged:
	default:
		errs = append(errs, field.NotSupported(path.Child("managementPolicy"), spec.ManagementPolicy,
			[]v1alpha1.ManagementPolicy{v1alpha1.Managed, v1alpha1.Unmanaged}))
	}
	switch spec.AuthenticatedDeletes {
	case "", v1alpha1.AuthenticatedDeletesRequired, v1alpha1.AuthenticatedDeletesNotRequired:
	default:
		errs = append(errs, field.NotSupported(path.Child("authenticatedDeletes"), spec.AuthenticatedDeletes,
			[]v1alpha1.AuthenticatedDeletes{v1alpha1.AuthenticatedDeletesRequired, v1alpha1.AuthenticatedDeletesNotRequired}))
	}
	return errs
}

// compileMode repeats what the schema says of Deny: a guard that could be walked
// around must not look as if it denied.
func compileMode(ref GuardRef, spec v1alpha1.GuardSpec, path *field.Path) field.ErrorList {
	switch spec.Mode {
	case "", v1alpha1.GuardModeAudit, v1alpha1.GuardModeWarn:
		return nil
	case v1alpha1.GuardModeDeny:
		var errs field.ErrorList
		if ref.Namespace != "" {
			errs = append(errs, field.Forbidden(path.Child("mode"), "only a ClusterSpecGuard may deny"))
		}
		if spec.Selector != nil {
			errs = append(errs, field.Forbidden(path.Child("selector"), "a guard that denies selects by namespace and kind"))
		}
		return errs
	default:
		return field.ErrorList{field.NotSupported(path.Child("mode"), spec.Mode,
			[]v1alpha1.GuardMode{v1alpha1.GuardModeAudit, v1alpha1.GuardModeWarn, v1alpha1.GuardModeDeny})}
	}
}

func compileResources(spec *v1alpha1.GuardSpec) ([]canon.GVK, field.ErrorList) {
	var errs field.ErrorList
	if len(spec.Resources)+len(spec.Categories) == 0 {
		errs = append(errs, field.Required(field.NewPath("spec", "resources"), "a guard names at least one kind or category"))
	}
	listed := ListResources(spec)
	kinds := make([]canon.GVK, 0, len(listed))
	for _, r := range listed {
		at := r.Path
		gvk := canon.ParseGVK(r.APIVersion, r.Kind)
		switch {
		case gvk.Version == "" || strings.Contains(gvk.Version, "/"):
			errs = append(errs, field.Invalid(at.Child("apiVersion"), r.APIVersion, "must be group/version, or a version of the core group"))
		case r.Kind == "":
			errs = append(errs, field.Required(at.Child("kind"), "must not be empty"))
		case gvk.Group == "" && r.Kind == "Secret":
			errs = append(errs, field.Forbidden(at.Child("kind"), "Secrets are never guarded: their values must not be stored"))
		default:
			kinds = append(kinds, gvk)
		}
	}
	return kinds, errs
}

// compileSelector refuses the empty selector: "all" is written by leaving it
// out, and an empty one is more often a slip of the pen.
func compileSelector(selector *metav1.LabelSelector, path *field.Path) (labels.Selector, field.ErrorList) {
	if selector == nil {
		return nil, nil
	}
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return nil, field.ErrorList{field.Required(path, "an empty selector is refused; leave it out to select everything")}
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, metav1.FormatLabelSelector(selector), err.Error())}
	}
	return s, nil
}

func compileExpected(rules []v1alpha1.ExpectedWriter, path *field.Path) ([]expectedRule, field.ErrorList) {
	var errs field.ErrorList
	compiled := make([]expectedRule, len(rules))
	for i, rule := range rules {
		at := path.Index(i)
		if rule.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), "must not be empty"))
		}
		var more field.ErrorList
		compiled[i].name = rule.Name
		compiled[i].writers, more = compileWriters(rule.Writers, at.Child("writers"))
		errs = append(errs, more...)
		compiled[i].paths, more = compilePaths(rule.Paths, at.Child("paths"))
		errs = append(errs, more...)
	}
	return compiled, errs
}

func compilePaths(texts []string, path *field.Path) ([]canon.Path, field.ErrorList) {
	var errs field.ErrorList
	paths := make([]canon.Path, 0, len(texts))
	for i, text := range texts {
		p, err := canon.ParsePath(text)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(path.Index(i), diff.TruncateText(text, 80), err.Error()))
		case p.IsRoot():
			errs = append(errs, field.Required(path.Index(i), "must not be the whole object"))
		default:
			paths = append(paths, p)
		}
	}
	return paths, errs
}
