// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Live is a Source that reads when it is asked, with the rights of its client.
// Objects are listed once per kind and namespace and kept, so one Live is for one
// question. Its methods may be called from any goroutine.
type Live struct {
	Reader client.Reader
	Mapper meta.RESTMapper
	// Excluded namespaces are never guarded.
	Excluded []string
	System   specguard.System

	mu     sync.Mutex
	listed map[place]*listing
}

type place struct {
	schema.GroupVersionKind
	namespace string
}

type listing struct {
	objects map[string]*kube.Object
	err     error
}

// World implements Source.
func (s *Live) World(ctx context.Context, now time.Time) (*World, error) {
	snapshot, err := guards.Read(ctx, s.Reader, s.Mapper, s.Excluded, s.System, now)
	if err != nil {
		return nil, err
	}
	w := &World{Guards: snapshot}
	if err := readWorld(ctx, s.Reader, w, now); err != nil {
		return nil, err
	}
	if err := readReleases(ctx, s.Reader, w); err != nil {
		return nil, err
	}
	return w, readAssessments(ctx, s.Reader, w)
}

// Object implements Source. Kinds that the guards do not name are not asked for.
func (s *Live) Object(ctx context.Context, key kube.Key) (*kube.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{key.GroupVersionKind, key.Namespace}
	if s.listed[at] == nil {
		if s.listed == nil {
			s.listed = map[place]*listing{}
		}
		s.listed[at] = s.list(ctx, at)
	}
	l := s.listed[at]
	return l.objects[key.Name], l.err
}

// Content implements Source: each object of a list is whole.
func (s *Live) Content(_ context.Context, _ kube.Key, object *kube.Object) (*kube.Object, error) {
	return object, nil
}

func (s *Live) list(ctx context.Context, at place) *listing {
	l := &listing{objects: map[string]*kube.Object{}}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(at.GroupVersion().WithKind(at.Kind + "List"))
	if l.err = s.Reader.List(ctx, list, client.InNamespace(at.namespace)); l.err != nil {
		l.err = fmt.Errorf("listing %s in %s: %w", at.Kind, at.namespace, l.err)
		return l
	}
	for i := range list.Items {
		raw, err := list.Items[i].MarshalJSON()
		if err != nil {
			l.err = fmt.Errorf("reading %s %s: %w", at.Kind, list.Items[i].GetName(), err)
			return l
		}
		object, err := kube.Decode(raw, at.GroupVersionKind)
		if err != nil {
			l.err = fmt.Errorf("reading %s %s: %w", at.Kind, list.Items[i].GetName(), err)
			return l
		}
		l.objects[object.Name] = object
	}
	return l
}

// Body implements Source.
func (s *Live) Body(ctx context.Context, namespace, revision string) ([]byte, error) {
	return body(ctx, s.Reader, namespace, revision)
}

// Revision implements Source.
func (s *Live) Revision(ctx context.Context, namespace, name string) (*v1alpha1.BaselineRevisionSpec, error) {
	return revision(ctx, s.Reader, namespace, name)
}

// Plan implements Source.
func (s *Live) Plan(ctx context.Context, namespace, name string) (*v1alpha1.RemediationPlan, error) {
	return plan(ctx, s.Reader, namespace, name)
}

func body(ctx context.Context, reader client.Reader, namespace, name string) ([]byte, error) {
	var revision v1alpha1.BaselineRevision
	if err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &revision); err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", name, err)
	}
	out, err := kube.Decompress(revision.Spec.Body)
	if err != nil {
		return nil, fmt.Errorf("reading revision %s: %w: %w", name, ErrDamaged, err)
	}
	return out, nil
}

func revision(ctx context.Context, reader client.Reader, namespace, name string) (*v1alpha1.BaselineRevisionSpec, error) {
	r := &v1alpha1.BaselineRevision{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, r)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // absent is an answer
	case err != nil:
		return nil, fmt.Errorf("reading revision %s/%s: %w", namespace, name, err)
	}
	r.Spec.Body = nil
	return &r.Spec, nil
}

func plan(ctx context.Context, reader client.Reader, namespace, name string) (*v1alpha1.RemediationPlan, error) {
	p := &v1alpha1.RemediationPlan{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, p)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // absent is an answer
	case err != nil:
		return nil, fmt.Errorf("reading plan %s/%s: %w", namespace, name, err)
	}
	return p, nil
}
