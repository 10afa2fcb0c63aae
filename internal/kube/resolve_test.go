// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// silent is a mapper of an API server that does not answer.
type silent struct{ meta.RESTMapper }

func (silent) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("timeout")
}

func TestResolve(t *testing.T) {
	known := meta.NewDefaultRESTMapper(nil)
	known.Add(deployments, meta.RESTScopeNamespace)
	node := schema.GroupVersionKind{Version: "v1", Kind: "Node"}
	known.Add(node, meta.RESTScopeRoot)
	secret := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	known.Add(secret, meta.RESTScopeNamespace)
	tests := map[string]struct {
		mapper   meta.RESTMapper
		gvk      schema.GroupVersionKind
		want     string // path
		wantErr  error
		hopeless bool
	}{
		"a namespaced kind":          {mapper: known, gvk: deployments, want: "/apis/apps/v1/deployments"},
		"a kind that is not served":  {mapper: known, gvk: schema.GroupVersionKind{Group: "x", Version: "v1", Kind: "Y"}, wantErr: ErrUnknownKind, hopeless: true},
		"a cluster-scoped kind":      {mapper: known, gvk: node, wantErr: ErrClusterScoped, hopeless: true},
		"Secrets, though namespaced": {mapper: known, gvk: secret, wantErr: ErrSecret, hopeless: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := Resolve(tc.mapper, tc.gvk)
			if !errors.Is(err, tc.wantErr) || IsHopeless(err) != tc.hopeless {
				t.Fatalf("the error is %v, hopeless %t", err, IsHopeless(err))
			}
			if err == nil && r.path() != tc.want {
				t.Errorf("the path is %s, want %s", r.path(), tc.want)
			}
		})
	}
	if _, err := Resolve(silent{}, deployments); err == nil || IsHopeless(err) {
		t.Errorf("an API server that does not answer: %v", err)
	}
	if got := (Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Plural: "pods"}).path(); got != "/api/v1/pods" {
		t.Errorf("the core group is served at %s", got)
	}
}
