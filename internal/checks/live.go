// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/kube"
)

// Reading is what a live read found.
type Reading struct {
	// Object is nil when it does not exist.
	Object *kube.Object
	// Version at which that was so: the object's own, or for an absent one that of
	// the list that does not have it.
	Version string
	// At is when it was asked for.
	At time.Time
}

func (r Reading) contentBytes() int64 {
	if r.Object == nil {
		return 0
	}
	return r.Object.ContentBytes()
}

// ObjectReader reads one guarded object past all caches. What it cannot read is an
// error, never an absent object.
type ObjectReader interface {
	Read(ctx context.Context, resource kube.Resource, key kube.Key) (Reading, error)
}

// LiveObjects reads from the API server, which answers from a quorum of etcd.
type LiveObjects struct {
	client rest.Interface
	clock  clock.PassiveClock
}

// NewLiveObjects makes a reader of its own: bodies are read as they are sent, for
// numbers that go through Go values would not hash as the watch hashes them.
func NewLiveObjects(config *rest.Config, clk clock.PassiveClock) (*LiveObjects, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.QPS = -1 // the pace of checks is the bound
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for checks: %w", err)
	}
	return &LiveObjects{client: client, clock: clk}, nil
}

// Read implements ObjectReader.
func (l *LiveObjects) Read(ctx context.Context, resource kube.Resource, key kube.Key) (Reading, error) {
	reading := Reading{At: l.clock.Now()}
	raw, err := l.get(ctx, path.Join(collection(resource, key.Namespace), key.Name), nil)
	switch {
	case apierrors.IsNotFound(err) && !kube.IsUnserved(err):
		return l.readAbsent(ctx, reading, resource, key)
	case err != nil:
		return Reading{}, fmt.Errorf("reading %s: %w", key, err)
	}
	return reading.decode(raw, key)
}

// readAbsent asks once more by a list of this one name: the answer says at which
// version there is none, by which it can be told from what the watch knows.
func (l *LiveObjects) readAbsent(ctx context.Context, reading Reading, resource kube.Resource, key kube.Key) (Reading, error) {
	raw, err := l.get(ctx, collection(resource, key.Namespace), map[string]string{
		"fieldSelector": fields.OneTermEqualSelector("metadata.name", key.Name).String(),
	})
	if err != nil {
		return Reading{}, fmt.Errorf("asking whether %s is gone: %w", key, err)
	}
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return Reading{}, fmt.Errorf("asking whether %s is gone: %w", key, err)
	}
	if len(list.Items) > 0 { // made again in between
		return reading.decode(list.Items[0], key)
	}
	reading.Version = list.Metadata.ResourceVersion
	return reading, nil
}

func (l *LiveObjects) get(ctx context.Context, at string, parameters map[string]string) ([]byte, error) {
	request := l.client.Get().AbsPath(at).SetHeader("Accept", "application/json")
	for name, value := range parameters {
		request = request.Param(name, value)
	}
	result := request.Do(ctx)
	// Only Error reads the status that the API server sends with a refusal.
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

func (r Reading) decode(raw []byte, key kube.Key) (Reading, error) {
	object, err := kube.Decode(raw, key.GroupVersionKind)
	if err != nil {
		return Reading{}, fmt.Errorf("reading %s: %w", key, err)
	}
	r.Object, r.Version = object, object.ResourceVersion
	return r, nil
}

// collection is where the objects of a kind in a namespace are served.
func collection(resource kube.Resource, namespace string) string {
	root := path.Join("/apis", resource.GVK.Group)
	if resource.GVK.Group == "" {
		root = "/api"
	}
	return path.Join(root, resource.GVK.Version, "namespaces", namespace, resource.Plural)
}
