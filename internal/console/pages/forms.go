// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// verb is a row of the table of forms.
type verb struct {
	// name is the last segment of the path, and the ID of the form. sent are the words for it, behind "to".
	name, sent string
	// inputs are the names of the inputs that the form sends. Those in several come any number of times.
	inputs, several []string
	// request makes the request to the REST API that the form stands for.
	request func(*reader, client.ObjectKey) (*request, error)
	// asks again: the page at the path of the verb that has the form. It is nil where the page of the object has
	// the form.
	asks func(*reader) (view.Page, error)
	// queries are the parameters of that page.
	queries []string
	// hasValues says that the page that asks again has the values of the form already.
	hasValues bool
	// creates says that the form makes the object, so the path names none. leads is the path of the page of the object then.
	creates bool
	leads   func(*reader) string
}

// request is one to the REST API of the console.
type request struct {
	method, path string
	headers      map[string]string
	body         any
	// isTry says that the request stores no object. The page of the verb asks again after it.
	isTry bool
}

// post asks for an operation.
func post(path string, body any) *request {
	return &request{method: http.MethodPost, path: httpapi.Prefix + path, body: body}
}

// sentQuery is the parameter that says which request was sent.
const sentQuery = "sent"

// maxForm is how many bytes a form may have.
const maxForm = 64 << 10

// submit has the REST API carry out the request of a form. It leads to the page of the object, or shows the
// form again with the reason of the refusal.
func (p *Pages) submit(w http.ResponseWriter, r *http.Request, row *page, v *verb) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	in := p.newReader(ctx, r)
	err := checkQuery(r, nil)
	if err == nil {
		in.values, err = readForm(w, r, v)
	}
	if err == nil {
		err = p.carryOut(in, v) //nolint:contextcheck // the reader is the context
	}
	if err == nil && in.tried {
		p.serveAgain(w, in, row, v) //nolint:contextcheck // the reader is the context
		return
	}
	if err == nil {
		w.Header().Set("Location", v.pageAfter(in))
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	p.showRefusal(w, in, row, v, httpapi.ProblemOf(p.log, err)) //nolint:contextcheck // the reader is the context
}

// pageAfter is the address of the page that shows the outcome.
func (v *verb) pageAfter(in *reader) string {
	if v.creates {
		return v.leads(in)
	}
	return strings.TrimSuffix(in.request.URL.EscapedPath(), "/"+v.name) + "?" + sentQuery + "=" + v.name
}

// showRefusal shows the page of a form that was refused.
func (p *Pages) showRefusal(w http.ResponseWriter, in *reader, row *page, v *verb, problem *wire.Problem) {
	read := row.read
	if v.asks != nil {
		read = v.asks
	}
	shown, err := read(in)
	if err != nil {
		refusal := refusalOf(&verb{}, problem, nil)
		shown = p.refuse(row, in, refusal.Sentence)
	} else {
		in.bar(&shown)
		shown.Refuse(refusalOf(v, problem, in.values))
	}
	shown.Filters = nil // they lead to the address of the page, which is that of the form now
	p.answer(w, in.request, row, problem.Status, &shown)
}

// carryOut sends the request of a form to the REST API.
func (p *Pages) carryOut(in *reader, v *verb) error {
	var key client.ObjectKey
	var err error
	if !v.creates {
		if key, err = in.key("object"); err != nil {
			return err
		}
	}
	request, err := v.request(in, key)
	if err != nil {
		return err
	}
	err = p.ask(in, request)
	in.tried = err == nil && request.isTry
	return err
}

// serveAgain shows the page that asks again after a request that stored no object.
func (p *Pages) serveAgain(w http.ResponseWriter, in *reader, row *page, v *verb) {
	status := http.StatusOK
	shown, err := v.asks(in)
	if err != nil {
		problem := httpapi.ProblemOf(p.log, err)
		status, shown = problem.Status, p.refuse(row, in, wordsOf(problem))
	} else {
		in.bar(&shown)
	}
	p.answer(w, in.request, row, status, &shown)
}

// ask has the REST API answer a request, and returns its problem.
func (p *Pages) ask(ctx context.Context, asked *request) error {
	raw, err := json.Marshal(asked.body)
	if err != nil {
		return fmt.Errorf("encoding a request: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, asked.method, asked.path, bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range asked.headers {
		r.Header.Set(name, value)
	}
	answer := &recorder{header: http.Header{}, status: http.StatusOK}
	p.api.ServeHTTP(answer, r)
	if answer.status < http.StatusMultipleChoices {
		return nil
	}
	problem := &wire.Problem{}
	if err := json.Unmarshal(answer.body.Bytes(), problem); err != nil || problem.Status == 0 {
		return fmt.Errorf("the API answered %s %s with %d and no problem", asked.method, asked.path, answer.status)
	}
	return problem
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header            { return r.header }
func (r *recorder) WriteHeader(status int)         { r.status = status }
func (r *recorder) Write(part []byte) (int, error) { return r.body.Write(part) }

// readForm reads the values of a form. Inputs that the form does not have are refused, as the API refuses
// fields that it does not have.
func readForm(w http.ResponseWriter, r *http.Request, v *verb) (url.Values, error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/x-www-form-urlencoded" {
		return nil, wire.NewProblem(wire.Unsupported, "the body is no form: send application/x-www-form-urlencoded")
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, wire.NewProblem(wire.TooLarge, fmt.Sprintf("a form has at most %d bytes", maxForm))
		}
		return nil, wire.NewProblem(wire.BadRequest, "the form cannot be read")
	}
	for name, values := range r.PostForm {
		isSeveral := slices.Contains(v.several, name)
		if !isSeveral && (len(values) > 1 || !slices.Contains(v.inputs, name)) {
			return nil, wire.NewProblem(wire.BadRequest, fmt.Sprintf("the form takes each of these inputs once: %s", strings.Join(v.inputs, ", ")))
		}
		if slices.ContainsFunc(values, func(value string) bool { return !utf8.ValidString(value) }) {
			return nil, wire.NewProblem(wire.Invalid, "a value of the form is no UTF-8")
		}
	}
	return r.PostForm, nil
}

// refusalOf tells each fault beside its input. A fault that is about no input of the
// form is told at its top.
func refusalOf(v *verb, problem *wire.Problem, values url.Values) *view.Refusal {
	refusal := &view.Refusal{Form: v.name, Sentence: wordsOf(problem), Faults: map[string]string{}}
	if !v.hasValues {
		refusal.Values = values
	}
	switch {
	case problem.Status == http.StatusUnprocessableEntity && len(problem.Errors) > 0:
		refusal.Sentence = problem.Title // the faults say the rest
	case problem.Status == http.StatusPreconditionFailed:
		refusal.Sentence = "another user has changed the object since you opened the page. The form has your values, and asks about the object as it is now"
	}
	for _, fault := range problem.Errors {
		name, _, _ := strings.Cut(strings.TrimPrefix(fault.Location, "body."), ".")
		name, _, _ = strings.Cut(name, "[")
		switch {
		case slices.Contains(v.inputs, name), slices.Contains(v.several, name):
			refusal.Faults[name] = fault.Message
		default:
			refusal.Sentence += "; " + fault.Message
		}
	}
	return refusal
}

// sentOf says which request was sent. The words are those of the table, and never of the query.
func sentOf(row *page, sent string) (string, error) {
	if sent == "" {
		return "", nil
	}
	for i := range row.verbs {
		if row.verbs[i].name == sent {
			return "You asked to " + row.verbs[i].sent + ". The page shows the outcome.", nil
		}
	}
	return "", wire.NewProblem(wire.BadRequest, "the query "+sentQuery+" names no form of the page")
}
