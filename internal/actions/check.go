// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"crypto/rand"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// NewCheckValue returns a value for a request to check: the time, and a text that makes it
// fresh within one second too.
func NewCheckValue(now time.Time) string {
	return now.UTC().Format(time.RFC3339) + " " + rand.Text()
}

// IsCheckable reports whether something is left to check: a retired object is gone, and no
// guard selects an object that is not guarded.
func IsCheckable(b *v1alpha1.Baseline) bool {
	standing := StandingOf(b)
	return standing != StandingRetired && standing != StandingNotGuarded
}

// RequestCheck asks by an annotation of the Baseline that the assessor checks the object.
func RequestCheck(ctx context.Context, c client.Client, b *v1alpha1.Baseline, value string) error {
	return Submit(ctx, c, "its Baseline", b, func(*v1alpha1.Baseline) (map[string]any, error) {
		return map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationCheckRequested: value}}}, nil
	})
}

// JudgeCheck judges whether the check was made that was asked for with a value. It is
// refused where the Baseline is gone.
func JudgeCheck(b *v1alpha1.Baseline, value string, deleted bool) Progress {
	switch {
	case deleted:
		return Refused
	case b.Status.CheckRequested == value:
		return Taken
	default:
		return Pending
	}
}

// AwaitCheck waits until the assessor has made the check that was asked for, and returns
// the Baseline after it. The check is pending still when the context ends first.
func AwaitCheck(ctx context.Context, c client.WithWatch, b *v1alpha1.Baseline, value string) (progress Progress, checked *v1alpha1.Baseline, err error) {
	err = Await(ctx, c, b, &v1alpha1.BaselineList{}, func(current *v1alpha1.Baseline, deleted bool) bool {
		progress, checked = JudgeCheck(current, value, deleted), current
		return progress != Pending
	})
	return progress, checked, err
}
