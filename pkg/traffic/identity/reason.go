// SPDX-License-Identifier: Apache-2.0

package identity

import "errors"

// Reason says why a proxy is not let in. There are few, so they can be the label of
// a counter.
type Reason string

// The reasons.
const (
	// ReasonMissing: no token.
	ReasonMissing Reason = "Missing"
	// ReasonMalformed: not a token that Kubernetes makes.
	ReasonMalformed Reason = "Malformed"
	// ReasonSignature: not signed with the key that it names.
	ReasonSignature Reason = "Signature"
	// ReasonAudience: for somebody else.
	ReasonAudience Reason = "Audience"
	// ReasonAccount: a good one of a service account that may not ask.
	ReasonAccount Reason = "Account"
	// ReasonExpired: its time is over, or has not come.
	ReasonExpired Reason = "Expired"
	// ReasonNotBound: of a service account, but of no pod.
	ReasonNotBound Reason = "NotBound"
	// ReasonPodGone: well signed, but its pod or service account is gone.
	ReasonPodGone Reason = "PodGone"
	// ReasonWrongPod: well signed, but another pod has its pod's name now.
	ReasonWrongPod Reason = "WrongPod"
	// ReasonRefused: its key is unknown, and the API server does not accept it.
	ReasonRefused Reason = "Refused"
	// ReasonBusy: too many tokens have to be reviewed; it may be a good one.
	ReasonBusy Reason = "Busy"
	// ReasonUnavailable: the API server did not answer; it may be a good one.
	ReasonUnavailable Reason = "Unavailable"
)

// Reasons are all of them.
func Reasons() []Reason {
	return []Reason{
		ReasonMissing, ReasonMalformed, ReasonSignature, ReasonAudience, ReasonAccount, ReasonExpired, ReasonNotBound,
		ReasonPodGone, ReasonWrongPod, ReasonRefused, ReasonBusy, ReasonUnavailable,
	}
}

// texts are all that an error says of a token: nothing out of it.
var texts = map[Reason]string{
	ReasonMissing:     "no bearer token was sent",
	ReasonMalformed:   "it is not a service account token",
	ReasonSignature:   "its signature is wrong",
	ReasonAudience:    "it is for another audience",
	ReasonAccount:     "it is of a service account that may not ask",
	ReasonExpired:     "it has expired or is not valid yet",
	ReasonNotBound:    "it is not bound to a pod",
	ReasonPodGone:     "its pod or service account is gone",
	ReasonWrongPod:    "another pod has the name of its pod now",
	ReasonRefused:     "the API server does not accept it",
	ReasonBusy:        "too many tokens have to be reviewed",
	ReasonUnavailable: "the API server did not review it",
}

// Error is why a proxy is not let in. It holds nothing of the token.
type Error struct {
	Reason Reason
	cause  error
}

// Error implements error.
func (e *Error) Error() string {
	text := "verifying a token: " + texts[e.Reason]
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap gives what the API server's client said, if it was asked.
func (e *Error) Unwrap() error { return e.cause }

// Temporary says that the same token may be good later.
func (e *Error) Temporary() bool { return e.Reason == ReasonBusy || e.Reason == ReasonUnavailable }

func refuse(why Reason) *Error { return &Error{Reason: why} }

// ReasonOf is the reason of an error of this package; empty for any other.
func ReasonOf(err error) Reason {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Reason
	}
	return ""
}
