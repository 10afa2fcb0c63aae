// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"crypto/sha1" //nolint:gosec // version 5 of RFC 9562 has this hash, and signs no message
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Object has the fields of all objects of the API.
type Object struct {
	ID   string `json:"id" kind:"-" readOnly:"true" doc:"The uid of the object."`
	Name string `json:"name" kind:"-" minLength:"1" maxLength:"253"`
	// Namespace is empty for objects of the whole cluster.
	Namespace  string    `json:"namespace,omitempty" kind:"-" maxLength:"63"`
	CreatedAt  time.Time `json:"createdAt,omitzero" kind:"-" readOnly:"true"`
	Generation int64     `json:"generation,omitempty" kind:"-" readOnly:"true"`
}

func objectOf(m *metav1.ObjectMeta) Object {
	return Object{ID: string(m.UID), Name: m.Name, Namespace: m.Namespace, CreatedAt: m.CreationTimestamp.UTC(), Generation: m.Generation}
}

// Condition is a condition of a kind, in the words of Kubernetes.
type Condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
	LastTransitionTime time.Time `json:"lastTransitionTime,omitzero"`
}

func conditionsOf(conditions []metav1.Condition) []Condition {
	out := make([]Condition, 0, len(conditions))
	for _, c := range conditions {
		out = append(out, Condition{c.Type, string(c.Status), c.Reason, c.Message, c.LastTransitionTime.UTC()})
	}
	return out
}

// Uids are the uids of objects that other objects know by name. A name that is missing, because the
// object is gone or the caller cannot read it, has the empty id.
type Uids struct {
	// Environments by name.
	Environments map[string]string
	// Namespaces by name.
	Namespaces map[string]string
	// EnvironmentOf is the name of the Environment that a namespace belongs to, by namespace.
	EnvironmentOf map[string]string
}

// nameID returns the UUID of version 5 for names. The names are joined by a character that no name has.
func nameID(names ...string) string {
	sum := sha1.Sum([]byte("plumbline.dev\n" + strings.Join(names, "\n"))) //nolint:gosec // as above
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x50
	id[8] = id[8]&0x3f | 0x80
	return hyphened(hex.EncodeToString(id))
}

// hyphened writes 32 hexadecimal digits as a UUID.
func hyphened(digits string) string {
	return fmt.Sprintf("%s-%s-%s-%s-%s", digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
}

// timeOf returns nil for no time.
func timeOf(t *metav1.Time) *time.Time {
	if t == nil || t.IsZero() {
		return nil
	}
	at := t.UTC()
	return &at
}

// textOf returns nil for no text.
func textOf(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
