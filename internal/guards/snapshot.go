// SPDX-License-Identifier: Apache-2.0

package guards

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Namespace is what the rules ask about a namespace.
type Namespace struct {
	Labels      map[string]string
	Terminating bool
}

// errExcess is the problem of a guard beyond the bound of its namespace.
var errExcess = fmt.Errorf("the namespace has %d older SpecGuards, which is the bound; merge guards, or delete some", specguard.MaxNamespaceGuards)

// errExcessExceptions is the problem of an exception beyond the bound of its namespace.
var errExcessExceptions = fmt.Errorf("the namespace has %d older SpecGuardExceptions, which is the bound; delete those that have ended", specguard.MaxNamespaceExceptions)

// Problem is why a guard, or one kind of it, is not in force.
type Problem struct {
	// Path of the field, e.g. spec.resources[1].kind.
	Path string
	Err  error
}

// FormatProblems joins the texts of problems, each of which begins with the path of its field.
func FormatProblems(problems []Problem) string {
	texts := make([]string, 0, len(problems))
	for _, p := range problems {
		text := p.Err.Error()
		if !strings.HasPrefix(text, p.Path) {
			text = p.Path + ": " + text
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// Snapshot is everything that the guards say at one moment; immutable.
type Snapshot struct {
	// Set of the guards; those that did not compile only veto.
	Set *specguard.GuardSet
	// Resources says where each kind that can be watched is served.
	Resources map[schema.GroupVersionKind]kube.Resource
	// Namespaces that exist, by name.
	Namespaces map[string]Namespace
	// Refs are the guards that exist, as they stand in Baseline.status.guards.
	Refs map[specguard.GuardRef]time.Time
	// Problems by guard; a guard without an entry is wholly in force.
	Problems map[specguard.GuardRef][]Problem
	// OtherVersions are kinds that a guard names in another version than the one in
	// which they are judged. The guard is in force for them all the same.
	OtherVersions map[specguard.GuardRef][]Problem
	// ExceptionProblems tells why an exception is not in force, by namespace and name.
	ExceptionProblems map[types.NamespacedName]error
	// number counts snapshots; see FindEpoch.
	number int64
	epochs epochs
	// crowded are the namespaces with more SpecGuards than can be in force.
	crowded map[string]bool
	// NextExpiry is when the next suspension ends, zero without one.
	NextExpiry time.Time
	// Again says that asking the API server anew may solve a problem.
	Again bool
	// Guards and ClusterGuards are what it was made of, for who reads once ([Read]);
	// the controller's own snapshots do not hold them.
	Guards        []v1alpha1.SpecGuard
	ClusterGuards []v1alpha1.ClusterSpecGuard

	kinds map[schema.GroupKind]judged
}

// refOf names a SpecGuard.
func refOf(g *v1alpha1.SpecGuard) specguard.GuardRef {
	return specguard.GuardRef{Namespace: g.Namespace, Name: g.Name}
}

// Build compiles all guards. It fails only when the API server could not say
// where a kind is served: what it did not answer must not look like an unknown kind.
func Build(in Input, mapper meta.RESTMapper, now time.Time) (*Snapshot, error) {
	s := &Snapshot{
		Resources:  map[schema.GroupVersionKind]kube.Resource{},
		Namespaces: in.namespacesByName(),
		Refs:       map[specguard.GuardRef]time.Time{},
		Problems:   map[specguard.GuardRef][]Problem{},
		crowded:    map[string]bool{},

		OtherVersions: map[specguard.GuardRef][]Problem{},
		kinds:         map[schema.GroupKind]judged{},
	}
	for i := range in.Guards {
		g := &in.Guards[i]
		s.Refs[refOf(g)] = g.CreationTimestamp.Time
	}
	excess := specguard.FindExcessGuards(s.Refs)
	var compiled []*specguard.Guard
	for i := range in.Guards {
		g := &in.Guards[i]
		ref := refOf(g)
		if excess[ref] {
			s.Problems[ref] = []Problem{{Path: "metadata.namespace", Err: errExcess}}
			s.crowded[ref.Namespace] = true
			continue
		}
		compiled = append(compiled, s.compile(ref, v1alpha1.ClusterGuardSpec{GuardSpec: g.Spec}, g.CreationTimestamp.Time).WithUID(g.UID))
	}
	for i := range in.ClusterGuards {
		g := &in.ClusterGuards[i]
		ref := specguard.GuardRef{Name: g.Name}
		compiled = append(compiled, s.compile(ref, g.Spec, g.CreationTimestamp.Time).WithUID(g.UID))
	}
	s.Set = specguard.NewGuardSet(compiled, in.Excluded, in.System).WithExceptions(s.compileExceptions(in.Exceptions))
	s.NextExpiry, _ = s.Set.NextExpiry(now)
	return s, s.resolve(in, mapper)
}

func (s *Snapshot) compile(ref specguard.GuardRef, spec v1alpha1.ClusterGuardSpec, created time.Time) *specguard.Guard {
	s.Refs[ref] = created
	g, errs := specguard.Compile(ref, spec.GuardSpec, spec.NamespaceSelector, created)
	if len(errs) == 0 {
		g, errs = g.WithAcceptBy(spec.AcceptBy)
	}
	if len(errs) == 0 {
		return g.WithTenantExceptions(spec.Exceptions).WithAcceptByAuthor(spec.AcceptByAuthor)
	}
	for _, err := range errs {
		s.Problems[ref] = append(s.Problems[ref], Problem{Path: err.Field, Err: err})
	}
	inert, _ := specguard.CompileInert(ref, spec.GuardSpec, spec.NamespaceSelector, created).WithAcceptBy(spec.AcceptBy)
	return inert.WithAcceptByAuthor(spec.AcceptByAuthor)
}

// compileExceptions compiles the exceptions, and notes why one is not in force.
func (s *Snapshot) compileExceptions(all []v1alpha1.SpecGuardException) []*specguard.Exception {
	s.ExceptionProblems = map[types.NamespacedName]error{}
	excess := specguard.FindExcessExceptions(all)
	compiled := make([]*specguard.Exception, 0, len(all))
	for i := range all {
		name := types.NamespacedName{Namespace: all[i].Namespace, Name: all[i].Name}
		exception, errs := specguard.CompileException(&all[i])
		switch {
		case len(errs) > 0:
			s.ExceptionProblems[name] = errs.ToAggregate()
		case excess[i]:
			s.ExceptionProblems[name] = errExcessExceptions
		default:
			compiled = append(compiled, exception)
		}
	}
	return compiled
}

// Watched lists the kinds to watch.
func (s *Snapshot) Watched() []kube.Resource {
	out := make([]kube.Resource, 0, len(s.Resources))
	for _, r := range s.Resources {
		out = append(out, r)
	}
	return out
}

// Covers tells whether a guard can select objects of a kind in a namespace, in force or not.
func (s *Snapshot) Covers(gvk schema.GroupVersionKind, namespace string) bool {
	n, known := s.Namespaces[namespace]
	return s.Set.Covers(canon.GVK(gvk), namespace, n.Labels, known)
}
