// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// OwnerReader reads owners live, with the rights of who names itself as Reader.
type OwnerReader struct {
	Client client.Reader
	Mapper meta.RESTMapper
	// Reader names who reads, for people: "the executor".
	Reader string
}

// Read finds out what became of the owners that an object of a namespace had. An error
// says that it is not known of one of them.
func (r OwnerReader) Read(ctx context.Context, namespace string, last *v1alpha1.ObservedMetadata) ([]repair.Owner, error) {
	if last == nil {
		return nil, nil
	}
	var owners []repair.Owner
	for i := range last.OwnerReferences {
		owner := repair.Owner{ObservedOwner: last.OwnerReferences[i]}
		var err error
		if owner.Lost, err = r.lost(ctx, namespace, &owner.ObservedOwner); err != nil {
			return nil, fmt.Errorf("reading the owner %s %s: %w", owner.Kind, owner.Name, err)
		}
		owners = append(owners, owner)
	}
	return owners, nil
}

// lost says why an owner is none any more; empty while the owner lives.
func (r OwnerReader) lost(ctx context.Context, namespace string, o *v1alpha1.ObservedOwner) (string, error) {
	gvk := schema.GroupVersionKind(canon.ParseGVK(o.APIVersion, o.Kind))
	mapping, err := r.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	switch {
	case meta.IsNoMatchError(err):
		return "the API server does not serve its kind", nil
	case err != nil:
		return "", err
	}
	key := types.NamespacedName{Name: o.Name}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		key.Namespace = namespace
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(gvk)
	err = r.Client.Get(ctx, key, live)
	switch {
	case apierrors.IsNotFound(err):
		return "it is gone", nil
	case apierrors.IsForbidden(err):
		return r.Reader + " may not get it", nil
	case err != nil:
		return "", err
	case string(live.UID) != o.UID:
		return "another object has its name", nil
	case live.DeletionTimestamp != nil:
		return "it is being deleted", nil
	}
	return "", nil
}

// readOwners reads the owners of a target that is to be made again.
func (r *run) readOwners(ctx context.Context, m *material) (err error) {
	reader := OwnerReader{Client: r.Client, Mapper: r.Client.RESTMapper(), Reader: "the executor"}
	m.standard.Owners, err = reader.Read(ctx, r.plan.Namespace, m.standard.Metadata)
	return err
}
