// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Idempotent has the key by which a repeat of a request finds what the first one made.
type Idempotent struct {
	Key string `header:"Idempotency-Key" maxLength:"256" doc:"A text of the caller's choice. A repeat with the same key and the same body is answered as the first request."`
}

// requestKey is an Idempotency-Key of a caller, with the body that it came with. It stands in the object
// that the request made, so each server finds it, and none has to remember it.
type requestKey struct{ id, digest string }

// requestPrefix begins the name of an object that has its name from the key.
const requestPrefix = "request-"

// keyDigits are the digits of a key: as many as fit into a label behind any word.
const keyDigits = 32

// of returns the key of a request of a user; nil without a key. The parts tell apart the objects of one request.
func (i *Idempotent) of(user string, body any, parts ...string) (*requestKey, error) {
	if i.Key == "" {
		return nil, nil //nolint:nilnil // a request without a key
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}
	id, err := json.Marshal(append([]string{user, i.Key}, parts...))
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return &requestKey{digestOf(id), digestOf(raw)}, nil
}

func digestOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:keyDigits]
}

// mark writes the key into an object, and names an object without a name by it.
func (k *requestKey) mark(object client.Object) {
	if k == nil {
		return
	}
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[v1alpha1.LabelRequestKey], annotations[v1alpha1.AnnotationRequestDigest] = k.id, k.digest
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
	if object.GetName() == "" {
		object.SetGenerateName("")
		object.SetName(requestPrefix + k.id)
	}
}

// made tells whether an object was made by a request with the key. A request with another body is refused.
func (k *requestKey) made(object client.Object) (bool, error) {
	if k == nil || object.GetLabels()[v1alpha1.LabelRequestKey] != k.id {
		return false, nil
	}
	if object.GetAnnotations()[v1alpha1.AnnotationRequestDigest] != k.digest {
		return false, invalidAt("header.Idempotency-Key", fmt.Sprintf("a request with another body had this key, and made %s", object.GetName()))
	}
	return true, nil
}

// createOnce creates an object, or finds the one that a request with the same key has made.
func createOnce[T client.Object](ctx context.Context, s *server, k *requestKey, from *source[T], object T, locate func(string) string) (T, error) {
	namespace := object.GetNamespace()
	if k != nil && object.GetName() != "" { // the key may have made an object with another name
		all, err := from.all(ctx, s.cluster, namespace)
		if err != nil {
			return object, err
		}
		for _, found := range all {
			if made, err := k.made(found); made || err != nil {
				return found, err
			}
		}
	}
	k.mark(object)
	err := s.cluster.Create(ctx, object)
	if err == nil {
		return object, nil
	}
	if apierrors.IsNotFound(err) && !kindIsMissing(err) {
		return object, invalidAt("body.namespace", "there is no namespace "+namespace)
	}
	failed := &requestError{verb: "create", kind: from.kind, namespace: namespace, err: err, locate: locate}
	if k == nil || !apierrors.IsAlreadyExists(err) {
		return object, failed
	}
	found, err := readNamed(ctx, s, from, object)
	if err != nil {
		return object, err
	}
	made, err := k.made(found)
	if err != nil || made {
		return found, err
	}
	return object, failed
}

// readNamed reads the object that has the name of another one.
func readNamed[T client.Object](ctx context.Context, s *server, from *source[T], object T) (T, error) {
	name := object.GetName()
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "." + name
	}
	return from.named(ctx, s.cluster, name)
}
