// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// Bodies reads BaselineRevisions, with a client that reads live.
type Bodies struct{ Client client.Reader }

// Body implements exec.Bodies.
func (b Bodies) Body(ctx context.Context, namespace, revision string) ([]byte, error) {
	r, err := b.read(ctx, namespace, revision)
	if err != nil {
		return nil, err
	}
	body, err := kube.Decompress(r.Spec.Body)
	if err != nil {
		return nil, fmt.Errorf("revision %s: %w: %w", revision, exec.ErrDamaged, err)
	}
	return body, nil
}

// FieldManagers implements exec.Bodies.
func (b Bodies) FieldManagers(ctx context.Context, namespace, revision string) ([]metav1.ManagedFieldsEntry, error) {
	r, err := b.read(ctx, namespace, revision)
	if err != nil {
		return nil, err
	}
	managers, err := kube.DecodeFieldManagers(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", exec.ErrDamaged, err)
	}
	return managers, nil
}

func (b Bodies) read(ctx context.Context, namespace, revision string) (*v1alpha1.BaselineRevision, error) {
	var r v1alpha1.BaselineRevision
	if err := b.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: revision}, &r); err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", revision, err)
	}
	return &r, nil
}
