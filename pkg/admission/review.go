// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// apiVersion of the reviews that are understood, the only one since Kubernetes 1.22.
const reviewAPIVersion = "admission.k8s.io/v1"

// Resource names what a request is addressed to.
type Resource struct {
	Group    string `json:"group"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
}

// Review is an AdmissionReview's request, as far as we look at it. Object and
// OldObject point into the request's body and are valid until the answer is
// written; everything else is a copy.
type Review struct {
	UID         string
	Kind        schema.GroupVersionKind
	Resource    Resource
	SubResource string
	Name        string
	Namespace   string
	Operation   admissionv1.Operation
	// User and Groups are the identity that the API server authenticated.
	User   string
	Groups []string
	// Object is nil on DELETE, OldObject on CREATE.
	Object    []byte
	OldObject []byte
	DryRun    bool
	// FieldManager is what the client calls itself: a hint, never evidence.
	FieldManager string
	// Authenticated says that the API server's client certificate was verified.
	Authenticated bool
}

// decodeReview reads the body of a request. On an error it returns what it had
// read up to there, so that the UID, which comes early, can still be answered.
func decodeReview(body []byte) (*Review, error) {
	r := &Review{}
	s := &scanner{b: body}
	version, kind, found := "", "", false
	err := s.members(func(key string) error {
		var err error
		switch key {
		case "apiVersion":
			version, err = s.text()
		case "kind":
			kind, err = s.text()
		case "request":
			found = true
			err = r.decodeRequest(s)
		default:
			_, err = s.raw()
		}
		return err
	})
	switch {
	case err != nil:
		return r, err
	case s.peek() != 0:
		return r, s.fail("trailing data")
	case version != reviewAPIVersion || kind != "AdmissionReview":
		return r, fmt.Errorf("%w: %q, kind %q", errVersion, version, kind)
	case !found || r.UID == "":
		return r, fmt.Errorf("%w: no request with a uid", ErrMalformed)
	default:
		return r, nil
	}
}

func (r *Review) decodeRequest(s *scanner) error {
	return s.members(func(key string) error {
		switch key {
		case "uid":
			return readText(s, &r.UID)
		case "kind":
			return r.decodeKind(s)
		case "resource":
			return readJSON(s, &r.Resource)
		case "subResource":
			return readText(s, &r.SubResource)
		case "name":
			return readText(s, &r.Name)
		case "namespace":
			return readText(s, &r.Namespace)
		case "operation":
			var op string
			err := readText(s, &op)
			r.Operation = admissionv1.Operation(op)
			return err
		case "userInfo":
			return r.decodeUser(s)
		case "object":
			return readObject(s, &r.Object)
		case "oldObject":
			return readObject(s, &r.OldObject)
		case "dryRun":
			return readJSON(s, &r.DryRun)
		case "options":
			return r.decodeOptions(s)
		default:
			_, err := s.raw()
			return err
		}
	})
}

func (r *Review) decodeKind(s *scanner) error {
	var kind struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	}
	err := readJSON(s, &kind)
	r.Kind = schema.GroupVersionKind(kind)
	return err
}

func (r *Review) decodeUser(s *scanner) error {
	var user struct {
		Username string   `json:"username"`
		Groups   []string `json:"groups"`
	}
	err := readJSON(s, &user)
	r.User, r.Groups = user.Username, user.Groups
	return err
}

func (r *Review) decodeOptions(s *scanner) error {
	var options struct {
		FieldManager string `json:"fieldManager"`
	}
	err := readJSON(s, &options)
	r.FieldManager = options.FieldManager
	return err
}

func readText(s *scanner, into *string) error {
	text, err := s.text()
	*into = text
	return err
}

// readJSON decodes one small value.
func readJSON(s *scanner, into any) error {
	raw, err := s.raw()
	if err != nil {
		return err
	}
	// Kubernetes' own decoder: encoding/json would take "USERNAME" for "username".
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// readObject takes an object as it is written; null becomes nil.
func readObject(s *scanner, into *[]byte) error {
	raw, err := s.raw()
	if err != nil || string(raw) == "null" {
		return err
	}
	*into = raw
	return nil
}
