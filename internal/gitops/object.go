// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// Metadata is what rules may select an object by, besides its name.
type Metadata struct{ Labels, Annotations map[string]string }

// Object is an object of the chart with fields that are filled in at run time.
type Object struct {
	Group, Version, Kind, Namespace, Name string
	// Parent is the JSON pointer below which all of those fields are.
	Parent string
	// Fields are JSON pointers to them, each below Parent or Parent itself.
	Fields []string
	// Metadata is nil when it could not be read; then Unread says why.
	Metadata *Metadata
	Unread   string
	// body is a sample of everything but apiVersion, kind and metadata.
	body map[string]any
	// path is Parent as a jq path expression, where that says more than a pointer.
	path string
}

// ID is Kind/name or Kind/namespace/name.
func (o *Object) ID() string {
	if o.Namespace == "" {
		return o.Kind + "/" + o.Name
	}
	return o.Kind + "/" + o.Namespace + "/" + o.Name
}

// Configuration is a webhook configuration of the given kind with one webhook.
func Configuration(kind, name, webhook string) Object {
	const bundle = "/webhooks/0/clientConfig/caBundle"
	return Object{
		Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind, Name: name, Parent: bundle, Fields: []string{bundle},
		path: ".webhooks[].clientConfig.caBundle",
		body: map[string]any{"webhooks": []any{map[string]any{
			"name":         webhook,
			"clientConfig": map[string]any{"caBundle": "Cg==", "service": map[string]any{"name": "plumbline-webhook"}},
		}}},
	}
}

// certificateKeys are what the webhook writes into its Secret.
var certificateKeys = []string{"ca.crt", "ca.key", "tls.crt", "tls.key"}

// leaseFields are what leader election writes.
var leaseFields = []string{"acquireTime", "holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime"}

// Secret is one that the webhook fills with its certificates.
func Secret(namespace, name string) Object {
	return filled(Object{Version: "v1", Kind: "Secret", Namespace: namespace, Name: name, Parent: "/data"}, certificateKeys)
}

// Lease is one that leaders fill in.
func Lease(namespace, name string) Object {
	return filled(Object{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Namespace: namespace, Name: name, Parent: "/spec"}, leaseFields)
}

func filled(o Object, keys []string) Object {
	values := map[string]any{}
	for _, key := range keys {
		values[key] = "x"
		o.Fields = append(o.Fields, o.Parent+"/"+key)
	}
	o.body = map[string]any{strings.TrimPrefix(o.Parent, "/"): values}
	return o
}

// sample is the object as a tool would see it.
func (o *Object) sample() ([]byte, error) {
	metadata := map[string]any{"name": o.Name}
	if o.Namespace != "" {
		metadata["namespace"] = o.Namespace
	}
	if m := o.Metadata; m != nil {
		metadata["labels"], metadata["annotations"] = m.Labels, m.Annotations
	}
	document := map[string]any{"apiVersion": strings.TrimPrefix(o.Group+"/"+o.Version, "/"), "kind": o.Kind, "metadata": metadata}
	maps.Copy(document, o.body)
	raw, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("writing a sample of %s: %w", o.ID(), err)
	}
	return raw, nil
}

// left are the fields that a document still has; the parent stands for all of them.
func (o *Object) left(document []byte) []string {
	var root any
	if err := json.Unmarshal(document, &root); err != nil || !has(root, "/kind") {
		return []string{o.Parent} // both tools fail on what is no object any more
	}
	var left []string
	for _, pointer := range o.Fields {
		if has(root, pointer) {
			left = append(left, pointer)
		}
	}
	if len(left) == len(o.Fields) {
		return []string{o.Parent}
	}
	return left
}

// Verdict is what a tool does to the fields of one object.
type Verdict struct {
	// Missing are the pointers that no rule covers; empty: all are covered.
	Missing []string
	// Unjudged says why the missing ones may be covered after all; empty: they
	// are not.
	Unjudged string
}

// Covered tells that nothing is missing.
func (v Verdict) Covered() bool { return len(v.Missing) == 0 }
