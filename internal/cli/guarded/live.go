// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// LiveObject is an object as the server has it now.
type LiveObject struct {
	// Body is the object as the server wrote it.
	Body []byte
	// Metadata is that of the object.
	Metadata metav1.PartialObjectMetadata
}

// ReadLive reads the object of a Baseline in the apiVersion in which it is
// guarded, or nil when there is none.
func ReadLive(ctx context.Context, c *invocation.Cluster, t Target, b *v1alpha1.Baseline) (*LiveObject, error) {
	kind := KindOf(b)
	mapping, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("reading %s as %s: %w", t, b.Spec.Target.APIVersion, err)
	}
	live := &LiveObject{}
	live.Body, err = c.Live(ctx, mapping, b.Namespace, b.Spec.Target.Name)
	if actions.IsAbsent(err) {
		return nil, nil //nolint:nilnil // absent is one of the three results of a read
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(live.Body, &live.Metadata); err != nil {
		return nil, fmt.Errorf("reading %s: %w", t, err)
	}
	return live, nil
}
