// SPDX-License-Identifier: Apache-2.0

package guards

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Scope is a part of all objects: a kind, in whatever version, in a namespace. An empty
// namespace stands for all namespaces, and an empty kind for all kinds.
type Scope struct {
	Namespace string
	Kind      schema.GroupKind
}

// Scopes are the parts that a change concerns. A tenant who edits guards in a loop must
// not make the assessor judge the objects of other namespaces.
type Scopes map[Scope]struct{}

func (s Scopes) add(namespace string, kind schema.GroupKind) {
	s[Scope{namespace, kind}] = struct{}{}
}

// ContainObject tells whether an object lies in one of the scopes.
func (s Scopes) ContainObject(key kube.Key) bool {
	for _, scope := range scopesOf(key) {
		if _, ok := s[scope]; ok {
			return true
		}
	}
	return false
}

// scopesOf lists all scopes in which an object lies.
func scopesOf(key kube.Key) [4]Scope {
	none := schema.GroupKind{}
	return [4]Scope{{"", none}, {"", key.GroupKind()}, {key.Namespace, none}, {key.Namespace, key.GroupKind()}}
}

// epochs are the numbers of the last snapshots that changed the rules of a scope.
type epochs map[Scope]int64

// FindEpoch finds the number that grows whenever an object must be judged anew: not with namespaces, whose labels
// decide only which guards select an object.
func (s *Snapshot) FindEpoch(key kube.Key) int64 {
	var newest int64
	for _, scope := range scopesOf(key) {
		newest = max(newest, s.epochs[scope])
	}
	return newest
}

// Follow numbers a snapshot after the one before, which is nil for the first, and returns
// the scopes whose objects the assessor looks at again. was and is are the inputs of both;
// expired says that a suspension has ended in between, which changes no guard.
func (s *Snapshot) Follow(before *Snapshot, was, is Input, expired bool) Scopes {
	rules := changedRules(before, s, was, is, expired)
	s.noteChanges(before, rules)
	return changedNamespaces(before, s, rules)
}

// noteChanges numbers a snapshot after the one before, and notes whose rules changed. Scopes
// of namespaces that are gone are dropped, so that they do not pile up.
func (s *Snapshot) noteChanges(before *Snapshot, changed Scopes) {
	s.number, s.epochs = 1, epochs{}
	if before != nil {
		s.number = before.number + 1
		maps.Copy(s.epochs, before.epochs)
	}
	for scope := range changed {
		// A kind that is not served has no objects, and tenants may name any.
		if s.servesKind(scope.Kind) || scope.Kind.Empty() || before != nil && before.servesKind(scope.Kind) {
			s.epochs[scope] = s.number
		}
	}
	maps.DeleteFunc(s.epochs, func(scope Scope, _ int64) bool {
		_, exists := s.Namespaces[scope.Namespace]
		return scope.Namespace != "" && !exists
	})
}

func (s *Snapshot) servesKind(kind schema.GroupKind) bool {
	_, served := s.kinds[kind]
	return served
}

// changedRules finds the scopes whose judgment may have changed. expired says that a
// suspension has ended since the snapshot before, which changes no guard.
func changedRules(before, after *Snapshot, was, is Input, expired bool) Scopes {
	changed := Scopes{}
	if before == nil {
		changed.add("", schema.GroupKind{})
		return changed
	}
	for kind, resource := range after.kinds {
		if before.kinds[kind] != resource {
			changed.add("", kind)
		}
	}
	for kind := range before.kinds {
		if !after.servesKind(kind) {
			changed.add("", kind)
		}
	}
	former, current := was.indexSpecs(), is.indexSpecs()
	for ref, guard := range former {
		if now, exists := current[ref]; !exists || now.version != guard.version || expired && guard.spec.Suspend != nil {
			changed.addGuard(ref, guard.spec, before, after)
		}
	}
	for ref, guard := range current {
		if then, existed := former[ref]; !existed || then.version != guard.version {
			changed.addGuard(ref, guard.spec, before, after)
		}
	}
	changedExceptions(was.Exceptions, is.Exceptions, expired, changed)
	return changed
}

// changedExceptions adds the namespaces and kinds of exceptions that are new, gone, changed or, if
// expired says so, possibly ended.
func changedExceptions(was, is []v1alpha1.SpecGuardException, expired bool, changed Scopes) {
	type version struct {
		uid        types.UID
		generation int64
	}
	versions := func(all []v1alpha1.SpecGuardException) map[types.NamespacedName]version {
		found := make(map[types.NamespacedName]version, len(all))
		for i := range all {
			found[types.NamespacedName{Namespace: all[i].Namespace, Name: all[i].Name}] = version{all[i].UID, all[i].Generation}
		}
		return found
	}
	add := func(all []v1alpha1.SpecGuardException, others map[types.NamespacedName]version) {
		for i := range all {
			e := &all[i]
			if others[types.NamespacedName{Namespace: e.Namespace, Name: e.Name}] == (version{e.UID, e.Generation}) && !expired {
				continue
			}
			for _, r := range specguard.ListResources(&v1alpha1.GuardSpec{Resources: e.Spec.Resources, Categories: e.Spec.Categories}) {
				changed.add(e.Namespace, schema.GroupVersionKind(canon.ParseGVK(r.APIVersion, r.Kind)).GroupKind())
			}
		}
	}
	add(was, versions(is))
	add(is, versions(was))
}

// addGuard adds the kinds of a guard. In a namespace at its bound, each guard decides
// which others are in force.
func (s Scopes) addGuard(ref specguard.GuardRef, spec *v1alpha1.GuardSpec, before, after *Snapshot) {
	if ref.Namespace != "" && (before.crowded[ref.Namespace] || after.crowded[ref.Namespace]) {
		s.add(ref.Namespace, schema.GroupKind{})
		return
	}
	for _, r := range specguard.ListResources(spec) {
		s.add(ref.Namespace, schema.GroupVersionKind(canon.ParseGVK(r.APIVersion, r.Kind)).GroupKind())
	}
}

// changedNamespaces adds to the scopes the namespaces that are new, gone or changed.
func changedNamespaces(before, after *Snapshot, changed Scopes) Scopes {
	all := maps.Clone(changed)
	if before == nil {
		return all
	}
	for name, now := range after.Namespaces {
		if then, existed := before.Namespaces[name]; !existed || !equality.Semantic.DeepEqual(then, now) {
			all.add(name, schema.GroupKind{})
		}
	}
	for name := range before.Namespaces {
		if _, exists := after.Namespaces[name]; !exists {
			all.add(name, schema.GroupKind{})
		}
	}
	return all
}

// versioned is the spec of a guard, and its identity among guards of one name.
type versioned struct {
	spec    *v1alpha1.GuardSpec
	version guardVersion
}

type guardVersion struct {
	uid        string
	generation int64
}

func (in Input) indexSpecs() map[specguard.GuardRef]versioned {
	specs := make(map[specguard.GuardRef]versioned, len(in.Guards)+len(in.ClusterGuards))
	for i := range in.Guards {
		g := &in.Guards[i]
		specs[refOf(g)] = versioned{&g.Spec, guardVersion{string(g.UID), g.Generation}}
	}
	for i := range in.ClusterGuards {
		g := &in.ClusterGuards[i]
		specs[specguard.GuardRef{Name: g.Name}] = versioned{&g.Spec.GuardSpec, guardVersion{string(g.UID), g.Generation}}
	}
	return specs
}

// ConcernsNamespaces tells whether an input has other namespaces than a snapshot, or
// lacks a guard of a namespace that is being deleted: the assessor must not go on to
// write there. A tenant can do neither over and over.
func ConcernsNamespaces(s *Snapshot, in *Input) bool {
	if s == nil || !equality.Semantic.DeepEqual(s.Namespaces, in.namespacesByName()) {
		return true
	}
	exist := make(map[specguard.GuardRef]bool, len(in.Guards))
	for i := range in.Guards {
		exist[refOf(&in.Guards[i])] = true
	}
	for ref := range s.Refs {
		if s.Namespaces[ref.Namespace].Terminating && !exist[ref] {
			return true
		}
	}
	return false
}
