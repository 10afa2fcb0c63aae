// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// shelf reads the stores of informers as the cache of controller-runtime does that is told not to copy.
type shelf struct {
	cache.Cache
	stores map[reflect.Type]toolscache.Indexer
}

// indexed are the fields of each kind by which it is read.
var indexed = map[client.Object]map[string]client.IndexerFunc{
	&corev1.Service{}:            {addressField: addresses},
	&corev1.Pod{}:                {podAddressField: podAddresses, injectedField: injected},
	&discoveryv1.EndpointSlice{}: {sliceField: serviceOfSlice},
	&v1alpha1.ABRelease{}:        {releaseField: serviceOfRelease},
	&v1alpha1.Baseline{}:         {quarantineField: inQuarantine},
	&corev1.Namespace{}:          nil, &corev1.Node{}: nil, &corev1.ConfigMap{}: nil,
}

// indexersOf a kind: by namespace, and by each field within a namespace and in all.
func indexersOf(fields map[string]client.IndexerFunc) toolscache.Indexers {
	all := toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}
	for field, of := range fields {
		all[field] = func(object any) (values []string, err error) {
			o := object.(client.Object) //nolint:forcetypeassert // informers keep objects
			for _, value := range of(o) {
				values = append(values, o.GetNamespace()+"/"+value, "/"+value)
			}
			return values, nil
		}
	}
	return all
}

func newShelf() *shelf {
	s := &shelf{stores: map[reflect.Type]toolscache.Indexer{}}
	for kind, fields := range indexed {
		s.stores[reflect.TypeOf(kind)] = toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexersOf(fields))
	}
	return s
}

func (s *shelf) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	key := name.String()
	if name.Namespace == "" {
		key = name.Name
	}
	if store := s.stores[reflect.TypeOf(into)]; store != nil {
		if o, there, err := store.GetByKey(key); there || err != nil {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o).Elem())
			return err
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key)
}

func (s *shelf) List(_ context.Context, list client.ObjectList, options ...client.ListOption) (err error) {
	var o client.ListOptions
	o.ApplyOptions(options)
	item := reflect.PointerTo(reflect.TypeOf(list).Elem().Field(2).Type.Elem())
	store := s.stores[item]
	if store == nil {
		return nil
	}
	var found []any
	switch {
	case o.FieldSelector != nil:
		r := o.FieldSelector.Requirements()[0]
		found, err = store.ByIndex(r.Field, o.Namespace+"/"+r.Value)
	case o.Namespace != "":
		found, err = store.ByIndex(toolscache.NamespaceIndex, o.Namespace)
	default:
		found = store.List()
	}
	var objects []runtime.Object
	for _, f := range found {
		object := f.(client.Object) //nolint:forcetypeassert // informers keep objects
		if o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			objects = append(objects, object)
		}
	}
	if err != nil {
		return err
	}
	return meta.SetList(list, objects)
}

// Without an index the shelf would read everything, or nothing.
func TestAShelfReadsWhatACacheDoes(t *testing.T) {
	s := newShelf()
	for _, name := range []types.NamespacedName{{Namespace: "shop", Name: "web"}, {Namespace: "shop", Name: "pay"}, {Namespace: "bank", Name: "web"}} {
		svc := clusterService(at(name.Namespace, name.Name, 0), "10.0.0.1")
		svc.Labels = map[string]string{"of": name.Namespace}
		if err := s.stores[reflect.TypeFor[*corev1.Service]()].Add(svc); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		options []client.ListOption
		want    int
	}{
		"everything":                  {nil, 3},
		"a namespace":                 {[]client.ListOption{client.InNamespace("shop")}, 2},
		"a field":                     {[]client.ListOption{client.MatchingFields{addressField: "10.0.0.1"}}, 3},
		"a field, within a namespace": {[]client.ListOption{client.MatchingFields{addressField: "10.0.0.1"}, client.InNamespace("bank")}, 1},
		"another value of a field":    {[]client.ListOption{client.MatchingFields{addressField: "10.0.0.2"}}, 0},
		"a label":                     {[]client.ListOption{client.MatchingLabels{"of": "bank"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var list corev1.ServiceList
			if err := s.List(t.Context(), &list, tc.options...); err != nil || len(list.Items) != tc.want {
				t.Errorf("%d are listed, want %d; %v", len(list.Items), tc.want, err)
			}
		})
	}
	var svc corev1.Service
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "bank", Name: "web"}, &svc); err != nil || svc.Namespace != "bank" {
		t.Errorf("got %v, %v", svc.Namespace, err)
	}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "bank", Name: "pay"}, &svc); !apierrors.IsNotFound(err) {
		t.Errorf("what is not there is %v", err)
	}
}
