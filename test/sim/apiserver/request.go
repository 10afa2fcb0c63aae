// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Request to the server.
type Request struct {
	// User is the authenticated user, and Client the process that sent it.
	User, Client string
	Method, Path string
	Query        url.Values
	ContentType  string
	Body         []byte
	// Sent is when it left its sender; zero if nobody noted that.
	Sent time.Time
}

// ReadRequest takes a request out of an HTTP request. A user that is impersonated
// is the user.
func ReadRequest(user, client string, r *http.Request) (Request, error) {
	request := Request{
		User: user, Client: client, Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(),
		ContentType: r.Header.Get("Content-Type"),
	}
	if as := r.Header.Get("Impersonate-User"); as != "" {
		request.User = as
	}
	if r.Body == nil {
		return request, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return Request{}, fmt.Errorf("reading the body of a request: %w", err)
	}
	request.Body = body
	if err := r.Body.Close(); err != nil {
		return Request{}, fmt.Errorf("closing the body of a request: %w", err)
	}
	return request, nil
}

// DryRun says whether nothing of it is to be stored.
func (r Request) DryRun() bool { return r.Query.Get("dryRun") == metav1.DryRunAll }

// Writes says whether it may change anything.
func (r Request) Writes() bool { return r.Method != http.MethodGet && !r.DryRun() }

// String says in one line what is asked.
func (r Request) String() string {
	line := r.Method + " " + r.Path
	if len(r.Query) > 0 {
		line += "?" + r.Query.Encode()
	}
	return line
}

// Response of the server.
type Response struct {
	Code int
	// Date is the server's time.
	Date time.Time
	Body []byte
}

// HTTP is the response as net/http has it.
func (r Response) HTTP(to *http.Request) *http.Response {
	return &http.Response{
		StatusCode: r.Code, Status: strconv.Itoa(r.Code) + " " + http.StatusText(r.Code),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: to,
		Header: http.Header{
			"Content-Type": {"application/json"},
			"Date":         {r.Date.UTC().Format(http.TimeFormat)},
		},
		ContentLength: int64(len(r.Body)), Body: io.NopCloser(bytes.NewReader(r.Body)),
	}
}

// Transport sends what a client asks to the server at once.
func (s *Server) Transport(user, client string) http.RoundTripper {
	return transport{s, user, client}
}

type transport struct {
	server       *Server
	user, client string
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := ReadRequest(t.user, t.client, r)
	if err != nil {
		return nil, err
	}
	return t.server.Do(request).HTTP(r), nil
}

// call is a request whose path is understood.
type call struct {
	Request
	resource        *Resource
	namespace, name string
	subresource     string
}

// route finds what a path is about.
func (s *Server) route(r Request) (*call, error) {
	parts := strings.Split(strings.Trim(r.Path, "/"), "/")
	var group, version string
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		group, version, parts = parts[1], parts[2], parts[3:]
	default:
		return nil, unknownPath()
	}
	c := &call{Request: r}
	if len(parts) >= 3 && parts[0] == "namespaces" && !isSubresource(parts[2]) {
		c.namespace, parts = parts[1], parts[2:]
	}
	c.resource = s.resources[resourceKey{group, version, parts[0]}]
	if c.resource == nil || !c.names(parts[1:]) {
		return nil, unknownPath()
	}
	return c, nil
}

// names takes name and subresource from a path, and says whether there is such a one.
func (c *call) names(parts []string) bool {
	if len(parts) > 0 {
		c.name = parts[0]
	}
	if len(parts) > 1 {
		c.subresource = parts[1]
	}
	everywhere := c.name == "" && c.Method != http.MethodPost // a list over all namespaces
	placed := c.resource.Namespaced == (c.namespace != "")
	return len(parts) <= 2 && c.resource.has(c.subresource) && (placed || everywhere)
}

// isSubresource tells /namespaces/x/status from /namespaces/x/configmaps.
func isSubresource(part string) bool { return part == "status" || part == "finalize" }

func (r *Resource) has(subresource string) bool {
	switch subresource {
	case "":
		return true
	case "status":
		return r.Status
	case "scale":
		return r.Scale
	}
	return false
}

func unknownPath() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}

// refusal is an error as the server answers it.
func (s *Server) refusal(err error) Response {
	status := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Reason: metav1.StatusReasonInternalError, Message: err.Error(),
	}
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	}
	return s.answer(int(status.Code), statusObject(status))
}

func statusObject(status metav1.Status) metav1.Status {
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return status
}

func (s *Server) answer(code int, body any) Response {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("encoding what was decoded from JSON: %v", err))
	}
	return Response{Code: code, Date: s.now(), Body: raw}
}
