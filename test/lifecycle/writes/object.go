// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Verb is what a call does.
type Verb string

// The calls of a life.
const (
	Create Verb = "create"
	Image  Verb = "image"
	Env    Verb = "env"
	Scale  Verb = "scale"
	Delete Verb = "delete"
)

// Reviews is how many admission reviews a call causes at least: /mutate and
// /validate, or /validate alone.
func (v Verb) Reviews() int {
	switch v {
	case Create, Image, Env:
		return 2
	case Scale, Delete:
		return 1
	default:
		return 0
	}
}

// steps is the length of a life: a create, changes, a delete.
const steps = 20

// Stored is what we write of a Deployment, and find again.
type Stored struct {
	Namespace, Name string
	Image, Env      string
	Replicas        int32
}

// Compare orders by namespace and name.
func (s Stored) Compare(other Stored) int {
	return cmp.Or(cmp.Compare(s.Namespace, other.Namespace), cmp.Compare(s.Name, other.Name))
}

// object is one of the Deployments that live at a time, life after life.
type object struct {
	Stored
	slot, life, step int
	alive            bool
}

// call is the next write to an object.
type call struct {
	verb              Verb
	method, path      string
	contentType, body string
	want              Stored // after it
}

// settle moves the object on. After a failed call nobody knows what is stored,
// so the slot goes on with another object.
func (o *object) settle(c call, err error) {
	if err != nil || c.verb == Delete {
		*o = object{slot: o.slot, life: o.life + 1}
		return
	}
	o.Stored, o.alive = c.want, true
	o.step++
}

func verbOf(step int) Verb {
	switch step {
	case 0:
		return Create
	case steps - 1:
		return Delete
	default:
		return []Verb{Image, Env, Scale}[step%3]
	}
}

// The Deployment is paused: without a ReplicaSet and pods, which no guard here
// selects, all of the machine is there for what is measured.
const manifest = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q},"spec":{"paused":true,"replicas":%d,` +
	`"selector":{"matchLabels":{"app":%q}},"template":{"metadata":{"labels":{"app":%q}},"spec":{"containers":[` +
	`{"name":"app","image":%q,"env":[{"name":"STEP","value":%q}]}]}}}}`

// next is the object's next call.
func (d *Driver) next(o *object) call {
	c := call{verb: verbOf(o.step), want: o.Stored, contentType: "application/json"}
	if c.verb == Create {
		c.want = Stored{
			Namespace: d.cfg.Namespaces[o.slot%len(d.cfg.Namespaces)],
			Name:      fmt.Sprintf("%s-%d-%d", d.cfg.Name, o.slot, o.life),
			Image:     "registry.invalid/app:v0", Env: "0",
		}
	}
	collection := "/apis/apps/v1/namespaces/" + c.want.Namespace + "/deployments"
	c.method, c.path = "PATCH", collection+"/"+c.want.Name
	switch c.verb {
	case Create:
		c.method, c.path = "POST", collection
		c.body = fmt.Sprintf(manifest, c.want.Name, c.want.Replicas, c.want.Name, c.want.Name, c.want.Image, c.want.Env)
	case Image:
		c.want.Image = fmt.Sprintf("registry.invalid/app:v%d", o.step)
		c.contentType = "application/strategic-merge-patch+json"
		c.body = fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":%q}]}}}}`, c.want.Image)
	case Env:
		c.want.Env = fmt.Sprint(o.step)
		c.contentType = "application/strategic-merge-patch+json"
		c.body = fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","env":[{"name":"STEP","value":%q}]}]}}}}`, c.want.Env)
	case Scale:
		c.want.Replicas = int32(o.step)
		c.path += "/scale"
		c.contentType = "application/merge-patch+json"
		c.body = fmt.Sprintf(`{"spec":{"replicas":%d}}`, c.want.Replicas)
	case Delete:
		c.method = "DELETE"
	}
	return c
}

// Observation is a Deployment of the stream as the API server shows it.
type Observation struct {
	Stored
	// Stamp is its annotation plumbline.dev/spec-hash, and Hash what that should
	// be: the pl1 hash of the body.
	Stamp, Hash string
}

// Observe reads a Deployment's JSON.
func Observe(body []byte) (Observation, error) {
	var shown struct {
		Metadata struct {
			Namespace, Name string
			Annotations     map[string]string
		}
		Spec struct {
			Replicas int32
			Template struct {
				Spec struct {
					Containers []struct {
						Image string
						Env   []struct{ Name, Value string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(body, &shown); err != nil {
		return Observation{}, fmt.Errorf("decoding a Deployment: %w", err)
	}
	hash, err := canon.HashBody(body, canon.ParseGVK("apps/v1", "Deployment"))
	if err != nil {
		return Observation{}, fmt.Errorf("hashing a Deployment: %w", err)
	}
	o := Observation{Stamp: shown.Metadata.Annotations[v1alpha1.AnnotationSpecHash], Hash: string(hash)}
	o.Namespace, o.Name, o.Replicas = shown.Metadata.Namespace, shown.Metadata.Name, shown.Spec.Replicas
	for _, c := range shown.Spec.Template.Spec.Containers {
		o.Image = c.Image
		for _, e := range c.Env {
			o.Env = e.Value
		}
	}
	return o, nil
}
