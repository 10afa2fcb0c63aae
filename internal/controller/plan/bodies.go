// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"

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
	var r v1alpha1.BaselineRevision
	if err := b.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: revision}, &r); err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", revision, err)
	}
	body, err := kube.Decompress(r.Spec.Body)
	if err != nil {
		return nil, fmt.Errorf("revision %s: %w: %w", revision, exec.ErrDamaged, err)
	}
	return body, nil
}
