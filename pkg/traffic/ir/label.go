// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownsLabel is how a record of fields
// (https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management)
// says that a manager owns the label [Managed].
const ownsLabel = `"f:` + Managed + `"`

// LabelOwners are the records of a Service's managers that own the label [Managed],
// without their other fields.
func LabelOwners(svc *corev1.Service) (owners []metav1.ManagedFieldsEntry) {
	for _, e := range svc.ManagedFields {
		if e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), ownsLabel) {
			e.FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{` + ownsLabel + `:{}}}}`)
			owners = append(owners, e)
		}
	}
	return owners
}

// labeledSince is the latest moment at which a Service can have been given its label; the
// zero time if it has none, or if that is not recorded. A manager's record has the time of
// its last change, so the label may be older.
func labeledSince(svc *corev1.Service) (since time.Time) {
	if svc.Labels[Managed] != "true" {
		return since
	}
	for _, e := range LabelOwners(svc) {
		if e.Time != nil && (since.IsZero() || e.Time.Time.Before(since)) {
			since = e.Time.Time
		}
	}
	return since
}
