// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"context"
	"fmt"

	"github.com/klauspost/compress/zstd"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// DecodeBody unpacks an authorized body. The memory bound is that of a body:
// a revision is data from a cluster, and zstd can promise terabytes.
func DecodeBody(r *v1alpha1.BaselineRevision) ([]byte, error) {
	if r.Spec.Encoding != v1alpha1.BodyEncodingZstd {
		return nil, fmt.Errorf("reading revision %s: unknown encoding %q", r.Name, r.Spec.Encoding)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(canon.MaxBodyBytes), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", r.Name, err)
	}
	defer decoder.Close()
	body, err := decoder.DecodeAll(r.Spec.Body, nil)
	if err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", r.Name, err)
	}
	if int64(len(body)) != r.Spec.Size {
		return nil, fmt.Errorf("reading revision %s: %d bytes instead of %d", r.Name, len(body), r.Spec.Size)
	}
	return body, nil
}

// GetRevision reads revision number of a Baseline. It fails on a revision that belongs to
// another Baseline.
func GetRevision(ctx context.Context, c client.Reader, b *v1alpha1.Baseline, number int64) (*v1alpha1.BaselineRevision, error) {
	revision := &v1alpha1.BaselineRevision{}
	key := client.ObjectKey{Namespace: b.Namespace, Name: specguard.RevisionName(b.Name, number)}
	if err := c.Get(ctx, key, revision); err != nil {
		return nil, err
	}
	if revision.Spec.BaselineName != b.Name || revision.Spec.Number != number {
		return nil, fmt.Errorf("revision %s says it is number %d of %s", revision.Name, revision.Spec.Number, revision.Spec.BaselineName)
	}
	return revision, nil
}

// keptGap is after how many missing numbers in a row older revisions are taken
// to be gone: the assessor keeps the newest without gaps.
const keptGap = 3

// ListRevisions gives the authorized states that are still kept, newest first. They
// are read by name: a list would carry every body of the namespace.
func ListRevisions(ctx context.Context, c client.Reader, b *v1alpha1.Baseline) ([]v1alpha1.BaselineRevision, error) {
	if b.Spec.Authorized == nil {
		return nil, nil
	}
	var found []v1alpha1.BaselineRevision
	for number, missing := b.Spec.Authorized.Number, 0; number >= 1 && missing < keptGap; number-- {
		revision, err := GetRevision(ctx, c, b, number)
		switch {
		case apierrors.IsNotFound(err):
			missing++
		case err != nil:
			return nil, err
		default:
			missing = 0
			found = append(found, *revision)
		}
	}
	return found, nil
}
