// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Reference names a guarded object in the version in which it is read.
type Reference struct {
	canon.GVK
	Namespace, Name string
}

// Targets reads and sends guarded objects as the JSON that they are, so that no
// number and no unknown field is lost on the way.
type Targets interface {
	// Get reads past every cache.
	Get(ctx context.Context, ref Reference) ([]byte, error)
	// Put is bound to the uid and resourceVersion in the body.
	Put(ctx context.Context, ref Reference, body []byte, dryRun bool) ([]byte, error)
	// Patch sends a merge patch, which is bound in the same way.
	Patch(ctx context.Context, ref Reference, patch []byte) ([]byte, error)
	// Post fails if there is an object of that name.
	Post(ctx context.Context, ref Reference, body []byte, dryRun bool) ([]byte, error)
}

// RESTTargets are Targets by way of the API server's own paths.
type RESTTargets struct {
	client rest.Interface
	mapper meta.RESTMapper
}

// newJSONClient returns a client of the API server's own paths that reads and writes JSON,
// and gives each request [protocol.RequestTimeout].
func newJSONClient(config *rest.Config) (*rest.RESTClient, error) {
	c := rest.CopyConfig(config)
	c.Timeout = protocol.RequestTimeout
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c.ContentType, c.AcceptContentTypes = "application/json", "application/json"
	client, err := rest.UnversionedRESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("making a client of JSON: %w", err)
	}
	return client, nil
}

// NewRESTTargets makes Targets. No request is sent twice by the client itself:
// whether to try again is for the protocol to decide.
func NewRESTTargets(config *rest.Config, mapper meta.RESTMapper) (*RESTTargets, error) {
	client, err := newJSONClient(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of guarded objects: %w", err)
	}
	return &RESTTargets{client: client, mapper: mapper}, nil
}

func (t *RESTTargets) path(ref Reference, named bool) ([]string, error) {
	mapping, err := t.mapper.RESTMapping(schema.GroupKind{Group: ref.Group, Kind: ref.Kind}, ref.Version)
	if err != nil {
		return nil, fmt.Errorf("finding where %s is served: %w", ref.Kind, err)
	}
	root := []string{"api", ref.Version}
	if ref.Group != "" {
		root = []string{"apis", ref.Group, ref.Version}
	}
	path := slices.Concat(root, []string{"namespaces", ref.Namespace, mapping.Resource.Resource})
	if named {
		path = append(path, ref.Name)
	}
	return path, nil
}

// Get implements Targets.
func (t *RESTTargets) Get(ctx context.Context, ref Reference) ([]byte, error) {
	path, err := t.path(ref, true)
	if err != nil {
		return nil, err
	}
	return rawOf(t.client.Get().AbsPath(path...).Do(ctx))
}

// Put implements Targets.
func (t *RESTTargets) Put(ctx context.Context, ref Reference, body []byte, dryRun bool) ([]byte, error) {
	path, err := t.path(ref, true)
	if err != nil {
		return nil, err
	}
	return send(ctx, t.client.Put().AbsPath(path...), "application/json", body, dryRun)
}

// Post implements Targets.
func (t *RESTTargets) Post(ctx context.Context, ref Reference, body []byte, dryRun bool) ([]byte, error) {
	path, err := t.path(ref, false)
	if err != nil {
		return nil, err
	}
	return send(ctx, t.client.Post().AbsPath(path...), "application/json", body, dryRun)
}

// Patch implements Targets.
func (t *RESTTargets) Patch(ctx context.Context, ref Reference, patch []byte) ([]byte, error) {
	path, err := t.path(ref, true)
	if err != nil {
		return nil, err
	}
	return send(ctx, t.client.Patch(types.MergePatchType).AbsPath(path...), string(types.MergePatchType), patch, false)
}

func send(ctx context.Context, request *rest.Request, contentType string, body []byte, dryRun bool) ([]byte, error) {
	request = request.MaxRetries(0).Param("fieldManager", FieldManager).
		Param("timeout", protocol.RequestTimeout.String()).SetHeader("Content-Type", contentType).Body(body)
	if dryRun {
		request = request.Param("dryRun", "All")
	}
	return rawOf(request.Do(ctx))
}

// rawOf is the body of an answer. Raw alone leaves out what the API server says
// about an error.
func rawOf(result rest.Result) ([]byte, error) {
	raw, err := result.Raw()
	if err != nil {
		if told := result.Error(); told != nil {
			err = told
		}
		return nil, err
	}
	return raw, nil
}
