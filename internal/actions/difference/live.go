// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Cluster is what a comparison reads.
type Cluster struct {
	client.Reader
	// Mapper knows the resource of each kind.
	Mapper meta.RESTMapper
	// Live reads one object as the server writes it.
	Live func(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) ([]byte, error)
	// Now is the time by which guards are suspended.
	Now func() time.Time
}

// LiveObject is an object as the server has it now.
type LiveObject struct {
	// Body is the object as the server wrote it.
	Body []byte
	// Metadata is that of the object.
	Metadata metav1.PartialObjectMetadata
}

// ReadLive reads the object of a Baseline in the apiVersion in which it is
// guarded, or nil when there is none.
func ReadLive(ctx context.Context, c Cluster, b *v1alpha1.Baseline) (*LiveObject, error) {
	kind := wording.KindOf(b)
	mapping, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("reading %s as %s: %w", wording.ObjectOf(b), b.Spec.Target.APIVersion, err)
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
		return nil, fmt.Errorf("reading %s: %w", wording.ObjectOf(b), err)
	}
	return live, nil
}
