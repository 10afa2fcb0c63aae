// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

const (
	// MaxExceptionTime is how long an exception lasts at most, from its creation.
	MaxExceptionTime = 90 * 24 * time.Hour
	// MaxNamespaceExceptions is how many exceptions of one namespace are in force.
	MaxNamespaceExceptions = 64
	// exceptionRulePrefix begins the rule of a mask that an exception explains.
	exceptionRulePrefix = "exception/"
)

// Exception is a SpecGuardException made ready for use; immutable.
type Exception struct {
	namespace, rule string
	kinds           []groupKind
	names           []string // empty: each name
	writers         *writers // nil: each writer with a name
	paths           []canon.Path
	until           time.Time
}

// CompileException makes an exception ready for use. The errors carry the path of the field; an
// exception with errors is nil and excuses no value.
func CompileException(e *v1alpha1.SpecGuardException) (*Exception, field.ErrorList) {
	path := field.NewPath("spec")
	made := &Exception{namespace: e.Namespace, rule: ExceptionRule(e.Name), names: slices.Clone(e.Spec.Names), until: e.Spec.EndTime.Time}
	named := v1alpha1.GuardSpec{Resources: e.Spec.Resources, Categories: e.Spec.Categories}
	kinds, errs := compileResources(&named)
	errs = append(errs, compileCategories(e.Spec.Categories, path.Child("categories"))...)
	for _, kind := range kinds {
		made.kinds = append(made.kinds, groupKind{kind.Group, kind.Kind})
	}
	var more field.ErrorList
	made.paths, more = compilePaths(e.Spec.Paths, path.Child("paths"))
	errs = append(errs, more...)
	if len(e.Spec.Paths) == 0 {
		errs = append(errs, field.Required(path.Child("paths"), "an exception names at least one path"))
	}
	if e.Spec.Writers != nil {
		compiled, more := compileWriters(*e.Spec.Writers, path.Child("writers"))
		made.writers, errs = &compiled, append(errs, more...)
	}
	if latest := e.CreationTimestamp.Add(MaxExceptionTime); made.until.After(latest) || made.until.IsZero() {
		errs = append(errs, field.Invalid(path.Child("endTime"), e.Spec.EndTime.UTC().Format(time.RFC3339),
			fmt.Sprintf("must be set, and at most 90 days after the creation: %s", latest.UTC().Format(time.RFC3339))))
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return made, nil
}

// ExceptionRule returns the rule that the masks of an exception name.
func ExceptionRule(name string) string { return exceptionRulePrefix + name }

// ExceptionOf returns the name of the exception that a rule of a mask names; ok is false for the
// rule of a guard.
func ExceptionOf(rule string) (name string, ok bool) {
	return strings.CutPrefix(rule, exceptionRulePrefix)
}

// FindExcessExceptions finds the exceptions beyond [MaxNamespaceExceptions] in their namespaces,
// by index. The oldest stay.
func FindExcessExceptions(all []v1alpha1.SpecGuardException) map[int]bool {
	made := map[GuardRef]time.Time{}
	index := map[GuardRef]int{}
	for i := range all {
		ref := GuardRef{Namespace: all[i].Namespace, Name: all[i].Name}
		made[ref], index[ref] = all[i].CreationTimestamp.Time, i
	}
	excess := map[int]bool{}
	for ref := range findExcess(made, MaxNamespaceExceptions) {
		excess[index[ref]] = true
	}
	return excess
}

// selects tells whether the exception is about an object at a time.
func (e *Exception) selects(q *Query) bool {
	return e.until.After(q.Now) && slices.Contains(e.kinds, groupKind{q.GVK.Group, q.GVK.Kind}) &&
		(len(e.names) == 0 || q.Name != "" && slices.Contains(e.names, q.Name))
}

// excuses tells whether the exception lets a writer change a path.
func (e *Exception) excuses(id Identity, path canon.Path) bool {
	return covered(e.paths, path) && (e.writers == nil && id.User != "" || e.writers != nil && e.writers.match(id))
}

// WithExceptions returns the set with the exceptions of tenants; nil entries are left out.
func (s *GuardSet) WithExceptions(exceptions []*Exception) *GuardSet {
	with := *s
	with.exceptions = map[string][]*Exception{}
	for _, e := range exceptions {
		if e != nil {
			with.exceptions[e.namespace] = append(with.exceptions[e.namespace], e)
		}
	}
	return &with
}

// WithTenantExceptions returns a ClusterSpecGuard as its field exceptions has it. A SpecGuard
// takes the exceptions of its namespace in any case.
func (g *Guard) WithTenantExceptions(value v1alpha1.GuardExceptions) *Guard {
	known := *g
	known.exceptions = value == v1alpha1.GuardExceptionsAllowed
	return &known
}

// takesExceptions tells whether the exceptions of the object's namespace apply to the guard.
func (g *Guard) takesExceptions() bool { return g.ref.Namespace != "" || g.exceptions }

// expects finds the rule by which a guard lets a caller write a path: one of its own, or an
// exception.
func (r Rules) expects(g *Guard, id Identity, path canon.Path) (rule string, ok bool) {
	if rule, ok := g.expects(id, path); ok || !g.takesExceptions() {
		return rule, ok
	}
	for _, e := range r.exceptions {
		if e.excuses(id, path) {
			return e.rule, true
		}
	}
	return "", false
}

// exceptedBelow tells whether an exception names a place strictly below a path.
func (r Rules) exceptedBelow(path canon.Path) bool {
	return slices.ContainsFunc(r.exceptions, func(e *Exception) bool {
		return slices.ContainsFunc(e.paths, func(p canon.Path) bool { return p.Len() > path.Len() && p.Overlaps(path) })
	})
}

// keepsException tells whether an exception of that rule still covers a path under a guard
// that takes exceptions.
func (r Rules) keepsException(rule string, path canon.Path) bool {
	if !slices.ContainsFunc(r.guards, (*Guard).takesExceptions) {
		return false
	}
	return slices.ContainsFunc(r.exceptions, func(e *Exception) bool { return e.rule == rule && covered(e.paths, path) })
}
