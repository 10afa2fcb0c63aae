// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// MaxAnswer is the largest answer of a receiver, in bytes.
const MaxAnswer = 64 << 10

// version of the requests; a change that breaks receivers has another one.
const version = "v1"

// The actions of a request.
const (
	actionApply  = "Apply"
	actionRemove = "Remove"
)

// Release names the release of a request.
type Release struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

// request is the body of a POST. A removal has neither a Service nor arms.
type request struct {
	Version  string    `json:"version"`
	Action   string    `json:"action"`
	Release  Release   `json:"release"`
	Sequence uint64    `json:"sequence"`
	Service  string    `json:"service,omitempty"`
	Arms     []arm     `json:"arms,omitempty"`
	Layout   []segment `json:"layout,omitempty"`
	Key      *key      `json:"key,omitempty"`
	Salt     string    `json:"salt,omitempty"`
	Override string    `json:"override,omitempty"`
	Match    *match    `json:"match,omitempty"`
}

// arm is a variation with its share in basis points, and the share up to which its range can grow without moving a
// visitor. The stable variation has the rest.
type arm struct {
	Variation   string                `json:"variation"`
	BasisPoints traffic.Weight        `json:"basisPoints"`
	Reserved    traffic.Weight        `json:"reserved,omitempty"`
	Selector    *metav1.LabelSelector `json:"selector,omitempty"`
	Workload    *workload             `json:"workload,omitempty"`
	ServedBy    string                `json:"servedBy,omitempty"`
}

type workload struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// segment has the buckets from From to before To.
type segment struct {
	Variation string         `json:"variation"`
	From      traffic.Weight `json:"from"`
	To        traffic.Weight `json:"to"`
}

type key struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Domain string `json:"domain,omitempty"`
	Secure bool   `json:"secure,omitempty"`
}

type match struct {
	Header string            `json:"header"`
	Values map[string]string `json:"values"`
}

// Answer is what a receiver says of a release.
type Answer struct {
	// Sequence in force; 0 without a split.
	Sequence uint64 `json:"sequence"`
	// Knowledge of the sequence: Proven, Accepted or Unknown.
	Knowledge traffic.Knowledge `json:"knowledge"`
	// Shares in force, in basis points by variation. A receiver can leave the shares out.
	Shares map[string]traffic.Weight `json:"shares,omitempty"`
	// Outcomes of each variation. A receiver can leave the outcomes out.
	Outcomes []Outcome `json:"outcomes,omitempty"`
	// Message for people, such as the reason why the split is not in force.
	Message string `json:"message,omitempty"`
	// Version of the receiver, for people.
	Version string `json:"version,omitempty"`
}

// Outcome counts the requests of a variation over the last seconds.
type Outcome struct {
	Variation     string `json:"variation"`
	WindowSeconds uint32 `json:"windowSeconds"`
	Completed     uint64 `json:"completed"`
	Failed        uint64 `json:"failed"`
	InFlight      int64  `json:"inFlight,omitempty"`
}

// encodeSplit returns the body that has a receiver apply a split.
func encodeSplit(release Release, split traffic.Split) ([]byte, error) {
	r := request{
		Version: version, Action: actionApply, Release: release, Sequence: split.Sequence,
		Service: split.Service, Salt: split.Salt, Override: split.Override,
	}
	of := map[string]traffic.Variation{}
	for _, v := range split.Variations {
		of[v.Name] = v
	}
	for _, share := range split.Shares {
		v := of[share.Variation]
		a := arm{Variation: share.Variation, BasisPoints: share.Weight, Reserved: share.Reserved, Selector: v.Selector, ServedBy: v.ServedBy}
		if v.Workload != nil {
			a.Workload = &workload{v.Workload.Kind, v.Workload.Name}
		}
		r.Arms = append(r.Arms, a)
	}
	var from traffic.Weight
	for _, s := range split.Shares.Layout() {
		r.Layout = append(r.Layout, segment{s.Variation, from, from + s.Weight})
		from += s.Weight
	}
	if k := split.Key; k.Kind != traffic.PerRequest {
		r.Key = &key{k.Kind.String(), k.Name, k.Domain, k.Secure}
	}
	if len(split.Match.Values) > 0 {
		r.Match = &match{split.Match.Header, split.Match.Values}
	}
	return marshal(r)
}

// encodeRemoval returns the body that has a receiver forget a release.
func encodeRemoval(release Release, sequence uint64) ([]byte, error) {
	return marshal(request{Version: version, Action: actionRemove, Release: release, Sequence: sequence})
}

func marshal(r request) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding sequence %d: %w", r.Sequence, err)
	}
	return body, nil
}

// ParseAnswer reads the answer of a receiver. Fields that it does not know are ignored; a value out of its bounds is an
// error.
func ParseAnswer(body []byte) (Answer, error) {
	if len(body) > MaxAnswer {
		return Answer{}, fmt.Errorf("reading the answer: it is larger than %d bytes", MaxAnswer)
	}
	var a Answer
	if err := json.Unmarshal(body, &a); err != nil {
		return Answer{}, fmt.Errorf("reading the answer: it is not the JSON of an answer: %w", err)
	}
	switch a.Knowledge {
	case traffic.Proven, traffic.Accepted, traffic.Unknown:
	case traffic.NoProxies, traffic.Contradicted:
		return Answer{}, fmt.Errorf("reading the answer: knowledge %s is not for receivers; use Proven, Accepted or Unknown", a.Knowledge)
	default:
		return Answer{}, fmt.Errorf("reading the answer: knowledge %.40q is not one of Proven, Accepted, Unknown", a.Knowledge)
	}
	var sum traffic.Weight
	for variation, weight := range a.Shares {
		if weight < 0 || weight > traffic.Total {
			return Answer{}, fmt.Errorf("reading the answer: the share of %.40q is %d, want 0 to %d", variation, weight, traffic.Total)
		}
		sum += weight
	}
	if len(a.Shares) > traffic.MaxVariations || len(a.Shares) > 0 && sum != traffic.Total {
		return Answer{}, fmt.Errorf("reading the answer: %d shares have the sum %d, want at most %d with the sum %d", len(a.Shares), sum, traffic.MaxVariations, traffic.Total)
	}
	if len(a.Outcomes) > traffic.MaxVariations {
		return Answer{}, fmt.Errorf("reading the answer: %d variations have outcomes, want at most %d", len(a.Outcomes), traffic.MaxVariations)
	}
	for _, o := range a.Outcomes {
		if o.Failed > o.Completed || o.InFlight < 0 {
			return Answer{}, fmt.Errorf("reading the answer: of %d requests to %.40q %d failed, and %d are in flight", o.Completed, o.Variation, o.Failed, o.InFlight)
		}
	}
	return a, nil
}
