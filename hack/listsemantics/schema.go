// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// guardable are the kinds whose lists get their semantics from the schema. Any
// other kind keeps the order of all its lists.
var guardable = []kschema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "PersistentVolumeClaim"},
	{Version: "v1", Kind: "Pod"},
	{Version: "v1", Kind: "PodTemplate"},
	{Version: "v1", Kind: "ReplicationController"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"},
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	{Group: "batch", Version: "v1", Kind: "CronJob"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
}

// uncovered members of an object are in no hash.
var uncovered = []string{"apiVersion", "kind", "metadata", "status"}

// Names in the schema at which pl1 departs from it: these lists are keyed, but
// their order changes what runs.
const (
	podSpecType    = "io.k8s.api.core.v1.PodSpec"
	initContainers = "initContainers"
	envVarType     = "io.k8s.api.core.v1.EnvVar"
)

// maxKeys is canon's bound of merge keys.
const maxKeys = 4

// table is the part of the schema that leads to lists that are not atomic.
type table struct {
	types []typeEntry // index 0 is the type without semantics
	kinds []kindEntry
}

type kindEntry struct {
	gvk  kschema.GroupVersionKind
	root int
}

// typeEntry mirrors canon's schemaType.
type typeEntry struct {
	comment    string
	fields     []fieldEntry
	values     int
	mode       string
	keys       []string
	element    int
	references bool
}

type fieldEntry struct {
	name string
	typ  int
}

// builder numbers types bottom-up; a type that leads to no list of interest is
// number 0.
type builder struct {
	schema *schema.Schema
	table  table
	named  map[string]int
	open   map[string]bool
}

func buildTable() (table, error) {
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	b := builder{named: map[string]int{}, open: map[string]bool{}}
	b.table.types = []typeEntry{{comment: "no semantics"}}
	for _, gvk := range guardable {
		root, err := b.kind(converter, gvk)
		if err != nil {
			return table{}, fmt.Errorf("building the table of %v: %w", gvk, err)
		}
		if root != 0 {
			b.table.kinds = append(b.table.kinds, kindEntry{gvk: gvk, root: root})
		}
	}
	return b.table, nil
}

func (b *builder) kind(converter managedfields.TypeConverter, gvk kschema.GroupVersionKind) (int, error) {
	object, err := scheme.Scheme.New(gvk)
	if err != nil {
		return 0, err
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	typed, err := converter.ObjectToTyped(object)
	if err != nil {
		return 0, err
	}
	b.schema = typed.Schema()
	name := *typed.TypeRef().NamedType
	atom, ok := b.schema.Resolve(typed.TypeRef())
	if !ok || atom.Map == nil {
		return 0, fmt.Errorf("type %s is no map", name)
	}
	covered := slices.DeleteFunc(slices.Clone(atom.Fields), func(f schema.StructField) bool {
		return slices.Contains(uncovered, f.Name)
	})
	return b.mapping(name, covered, schema.TypeRef{})
}

// ref gives the number of a type.
func (b *builder) ref(ref schema.TypeRef) (int, error) {
	if ref.NamedType == nil {
		return b.atom("list", ref)
	}
	name := *ref.NamedType
	if id, done := b.named[name]; done {
		return id, nil
	}
	if b.open[name] {
		return 0, fmt.Errorf("type %s contains itself", name)
	}
	b.open[name] = true
	id, err := b.atom(name, ref)
	b.named[name] = id
	return id, err
}

func (b *builder) atom(name string, ref schema.TypeRef) (int, error) {
	atom, ok := b.schema.Resolve(ref)
	switch {
	case !ok:
		return 0, fmt.Errorf("type %s is not in the schema", name)
	case strings.HasPrefix(name, "__untyped_"): // lists and maps of anything
		return 0, nil
	case atom.Map != nil:
		return b.mapping(name, atom.Fields, atom.Map.ElementType)
	case atom.List != nil:
		return b.list(name, atom.List)
	default:
		return 0, nil
	}
}

func (b *builder) mapping(name string, fields []schema.StructField, values schema.TypeRef) (int, error) {
	entry := typeEntry{comment: name}
	for _, f := range fields {
		id, err := b.ref(f.Type)
		if err != nil {
			return 0, err
		}
		if name == podSpecType && f.Name == initContainers {
			id = b.keepOrder(id)
		}
		if id != 0 {
			entry.fields = append(entry.fields, fieldEntry{name: f.Name, typ: id})
		}
	}
	if values.NamedType != nil || values.Inlined != (schema.Atom{}) {
		id, err := b.ref(values)
		if err != nil {
			return 0, err
		}
		entry.values = id
	}
	if len(entry.fields) == 0 && entry.values == 0 {
		return 0, nil
	}
	return b.add(entry), nil
}

func (b *builder) list(name string, list *schema.List) (int, error) {
	element, err := b.ref(list.ElementType)
	if err != nil {
		return 0, err
	}
	entry := typeEntry{comment: name, mode: "Atomic", element: element}
	if list.ElementType.NamedType != nil {
		entry.comment = "list of " + *list.ElementType.NamedType
		entry.references = *list.ElementType.NamedType == envVarType
	}
	switch {
	case list.ElementRelationship != schema.Associative && element == 0:
		return 0, nil
	case list.ElementRelationship != schema.Associative:
	case len(list.Keys) == 0:
		entry.mode = "Set"
	case len(list.Keys) > maxKeys:
		return 0, fmt.Errorf("%s has %d merge keys, canon allows %d", entry.comment, len(list.Keys), maxKeys)
	default:
		entry.mode, entry.keys = "Keyed", list.Keys
	}
	return b.add(entry), nil
}

// keepOrder is the list type with its keys, but with an order that counts.
func (b *builder) keepOrder(id int) int {
	entry := b.table.types[id]
	entry.mode = "KeyedOrdered"
	return b.add(entry)
}

// add numbers an entry; equal ones share a number.
func (b *builder) add(entry typeEntry) int {
	for id, old := range b.table.types {
		if reflect.DeepEqual(old, entry) {
			return id
		}
	}
	b.table.types = append(b.table.types, entry)
	return len(b.table.types) - 1
}
