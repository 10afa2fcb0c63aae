// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Verdict is what a review ends with. It is a label of metrics and an audit
// annotation, so each judge has a closed set.
type Verdict string

// The verdicts of a handler itself; those of a judge are the judge's own constants.
const (
	// VerdictUnassessed: allowed without having been judged; Reason says why.
	VerdictUnassessed Verdict = "unassessed"
	// VerdictDenied: what is unassessed elsewhere, of a handler that lets nothing
	// pass unjudged; Reason says why.
	VerdictDenied Verdict = "denied"
)

// Reason says why a review is unassessed, or denied.
type Reason string

// The reasons.
const (
	ReasonNone               Reason = ""
	ReasonShed               Reason = "shed"
	ReasonTooLarge           Reason = "too_large"
	ReasonContentType        Reason = "content_type"
	ReasonReadFailed         Reason = "read_failed"
	ReasonMalformed          Reason = "malformed"
	ReasonVersion            Reason = "version"
	ReasonPanic              Reason = "panic"
	ReasonNoSnapshot         Reason = "no_snapshot"
	ReasonObject             Reason = "object"
	ReasonUnknownOperation   Reason = "unknown_operation"
	ReasonUnknownSubresource Reason = "unknown_subresource"
	ReasonUnknownParent      Reason = "unknown_parent"
	ReasonNamespace          Reason = "namespace"
	ReasonPatch              Reason = "patch"
)

// errVersion says that a review is of a version that we do not know.
var errVersion = errors.New("unknown review version")

// Answer is what becomes of a review. Every answer allows the write, unless it has
// a Denial.
type Answer struct {
	Verdict Verdict
	// Class of the actor; empty when it was not judged.
	Class  v1alpha1.ActorClass
	Reason Reason
	// Err explains Reason in the log; it is not sent.
	Err error
	// Patch is a JSON Patch; nil changes nothing.
	Patch []byte
	// Warnings are shown to the writer, as many as the judge gives.
	Warnings []string
	// Audit becomes audit annotations; keys and values are bounded by us.
	Audit map[string]string
	// Denial refuses the write. Only a handler of NewFailClosed ever gives one.
	Denial *Denial
}

// Unassessed is the answer to a review that cannot be judged. It allows, but for a
// handler of NewFailClosed, which makes a denial of it.
func Unassessed(reason Reason, err error) Answer {
	return Answer{
		Verdict: VerdictUnassessed,
		Reason:  reason,
		Err:     err,
		Audit:   map[string]string{"verdict": string(VerdictUnassessed), "reason": string(reason)},
	}
}

// reasonOf maps an error of decodeReview to the reason that is counted.
func reasonOf(err error) Reason {
	if errors.Is(err, errVersion) {
		return ReasonVersion
	}
	return ReasonMalformed
}

const patchTypeJSON = "JSONPatch"

type responseReview struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Response   response `json:"response"`
}

// response has the fields of admission.k8s.io/v1 AdmissionResponse that are used.
type response struct {
	UID              string            `json:"uid"`
	Allowed          bool              `json:"allowed"`
	Status           *metav1.Status    `json:"status,omitempty"`
	Patch            []byte            `json:"patch,omitempty"`
	PatchType        *string           `json:"patchType,omitempty"`
	AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
	Warnings         []string          `json:"warnings,omitempty"`
}

// encode writes the answer to the review with a uid. Equal answers give equal bytes.
func (a *Answer) encode(uid string) ([]byte, error) {
	out := responseReview{
		Kind:       "AdmissionReview",
		APIVersion: reviewAPIVersion,
		Response: response{
			UID:              uid,
			Allowed:          a.Denial == nil,
			Patch:            a.Patch,
			AuditAnnotations: a.Audit,
			Warnings:         a.Warnings,
		},
	}
	if a.Denial != nil {
		out.Response.Status = a.Denial.status()
	}
	if a.Patch != nil {
		patchType := patchTypeJSON
		out.Response.PatchType = &patchType
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encoding the answer: %w", err)
	}
	return raw, nil
}
