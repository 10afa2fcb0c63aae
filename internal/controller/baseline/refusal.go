// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// maxRefusalTold bounds how much of a refusal is told: it may quote the status.
const maxRefusalTold = 512

// putStatus writes the status of a Baseline. A status that the API server refuses
// for its content would leave the Baseline as it was, perhaps in sync. So
// the least of that status is written, in state Unknown.
func (r *Reconciler) putStatus(ctx context.Context, s *subject, next *v1alpha1.Baseline) error {
	reason, why := v1alpha1.ReasonStatusTooLarge, fmt.Sprintf("it has more than %d bytes", specguard.MaxStatusBytes)
	if specguard.BoundStatus(&next.Status) {
		err := r.updateStatus(ctx, next)
		if refusalReason(err) == v1alpha1.ReasonStatusTooLarge {
			err = r.makeRoom(ctx, s, next)
		}
		if reason = refusalReason(err); reason == "" {
			return err
		}
		why = err.Error()
	}
	specguard.MinimizeStatus(&next.Status)
	err := r.putUnknown(ctx, s, next, reason, why)
	if refusalReason(err) == "" {
		return err
	}
	// The API server took the stored status once.
	s.baseline.Status.DeepCopyInto(&next.Status)
	next.Status.State = v1alpha1.StateUnknown
	return r.putUnknown(ctx, s, next, reason, why)
}

// putUnknown writes a status that says why the whole status is not there, unless the
// Baseline says that already.
func (r *Reconciler) putUnknown(ctx context.Context, s *subject, next *v1alpha1.Baseline, reason, why string) error {
	condition.Set{Conditions: &next.Status.Conditions, Generation: next.Generation, Now: s.now}.
		Unknown(reason, refusalMessage(why))
	if err := asStored(&next.Status); err != nil {
		return err
	}
	if sameStatus(&next.Status, &s.baseline.Status) {
		s.baseline.DeepCopyInto(next)
		return nil
	}
	return r.updateStatus(ctx, next)
}

func (r *Reconciler) updateStatus(ctx context.Context, b *v1alpha1.Baseline) error {
	// Only a PUT of /status checks the uid beside the resourceVersion.
	return r.Client.Status().Update(ctx, b, client.FieldOwner(FieldManager)) //nolint:wrapcheck // the caller names the write
}

// makeRoom takes the annotations of people off a Baseline, and writes the status again. A
// bounded status is too large only for such a Baseline.
func (r *Reconciler) makeRoom(ctx context.Context, s *subject, next *v1alpha1.Baseline) error {
	bare := s.baseline.DeepCopy()
	if err := r.updateBare(ctx, bare); err != nil {
		return err
	}
	s.baseline = bare
	bare.ObjectMeta.DeepCopyInto(&next.ObjectMeta)
	return r.updateStatus(ctx, next)
}

// updateBare writes a Baseline without the annotations and the managedFields that
// people may fill; a policy leaves nothing else to them. A request for a check stays.
func (r *Reconciler) updateBare(ctx context.Context, b *v1alpha1.Baseline) error {
	b.ManagedFields = []metav1.ManagedFieldsEntry{{}} // an empty list would keep them
	requested := b.Annotations[v1alpha1.AnnotationCheckRequested]
	b.Annotations = nil
	if requested != "" {
		b.Annotations = map[string]string{v1alpha1.AnnotationCheckRequested: diff.TruncateText(requested, maxRequest)}
	}
	return r.Client.Update(ctx, b, client.FieldOwner(FieldManager)) //nolint:wrapcheck // the caller names the write
}

func refusalMessage(why string) string {
	return "the status cannot be written, so most of it is left out; findingsTotal counts the findings. " +
		"Revert the object, or make it smaller: " + diff.TruncateText(why, maxRefusalTold)
}

// refusalReason recognizes an answer that the same status would get again.
func refusalReason(err error) string {
	switch {
	case err == nil:
		return ""
	case apierrors.IsInvalid(err):
		return v1alpha1.ReasonStatusRefused
	case apierrors.IsRequestEntityTooLargeError(err), exceedsStorage(err):
		return v1alpha1.ReasonStatusTooLarge
	default:
		return ""
	}
}

// exceedsStorage recognizes the refusals of etcd's server and of the connection to
// etcd, which the API server passes on as internal errors.
func exceedsStorage(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusInternalServerError {
		return false
	}
	message := status.Status().Message
	return strings.Contains(message, "request is too large") || strings.Contains(message, "message larger than max")
}
