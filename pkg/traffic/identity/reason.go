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
	// ReasonNoProxy: a good one, of a pod that has no proxy.
	ReasonNoProxy Reason = "NoProxy"
	// ReasonNoAddress: of a pod whose address is not known yet; it may be a good one.
	ReasonNoAddress Reason = "NoAddress"
	// ReasonAddress: a good one, shown from an address that is none of its pod's.
	ReasonAddress Reason = "Address"
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
		ReasonPodGone, ReasonWrongPod, ReasonNoProxy, ReasonNoAddress, ReasonAddress, ReasonRefused, ReasonBusy, ReasonUnavailable,
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
	ReasonNoProxy:     "its pod has no proxy of Plumbline: the label plumbline.dev/proxy and the init container plumbline-proxy are needed",
	ReasonNoAddress:   "the address of its pod is not known yet",
	ReasonAddress:     "it was shown from an address outside its pod",
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

// Unwrap gives the cause: what the API server's client or the caller of [Refuse] said.
func (e *Error) Unwrap() error { return e.cause }

// Temporary says that the same token may be good later.
func (e *Error) Temporary() bool {
	return e.Reason == ReasonBusy || e.Reason == ReasonUnavailable || e.Reason == ReasonNoAddress
}

// Refuse makes an Error of a caller that knows more about the pod of a token. The cause,
// which may be nil, is told to the proxy.
func Refuse(why Reason, cause error) *Error { return &Error{Reason: why, cause: cause} }

func refuse(why Reason) *Error { return Refuse(why, nil) }

// ReasonOf is the reason of an error of this package; empty for any other.
func ReasonOf(err error) Reason {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Reason
	}
	return ""
}
