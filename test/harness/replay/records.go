// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// maxLine bounds a record: the largest review and its envelope.
const maxLine = 8 << 20

// Record is one review as an API server sent it.
type Record struct {
	// Label says what was done, for the reader of the file.
	Label string `json:"label"`
	// Path is that of the webhook, "/mutate" or "/validate".
	Path string `json:"path"`
	// Review is the AdmissionReview.
	Review json.RawMessage `json:"review"`
}

// ErrNoRecords says that a file holds none.
var ErrNoRecords = errors.New("no records")

// Load reads records, one JSON object per line.
func Load(from io.Reader) ([]Record, error) {
	var out []Record
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var r Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("reading record %d: %w", n, err)
		}
		if r.Path == "" || r.Path[0] != '/' {
			return nil, fmt.Errorf("reading record %d: path %q", n, r.Path)
		}
		out = append(out, r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading records: %w", err)
	}
	if len(out) == 0 {
		return nil, ErrNoRecords
	}
	return out, nil
}

// Save writes records so that Load reads them.
func Save(to io.Writer, records []Record) error {
	w := bufio.NewWriter(to)
	encoder := json.NewEncoder(w)
	for i := range records {
		if err := encoder.Encode(&records[i]); err != nil {
			return fmt.Errorf("writing record %d: %w", i+1, err)
		}
	}
	return w.Flush()
}

// template is a record that stands for many objects: the places where its
// object's name and the review's uid are written are found once.
type template struct {
	path  string
	parts [][]byte // between the places
	isUID []bool   // of the place after parts[i]
}

// newTemplate finds the places. Only whole JSON strings are replaced, so that
// a name inside of a longer text stays.
func newTemplate(r Record) (template, error) {
	var review struct {
		Request struct {
			UID  string `json:"uid"`
			Name string `json:"name"`
		} `json:"request"`
	}
	if err := json.Unmarshal(r.Review, &review); err != nil {
		return template{}, fmt.Errorf("reading the review of %q: %w", r.Label, err)
	}
	if review.Request.UID == "" {
		return template{}, fmt.Errorf("reading the review of %q: no uid", r.Label)
	}
	uid := []byte(strconv.Quote(review.Request.UID))
	name := []byte(`"name":` + strconv.Quote(review.Request.Name))
	t := template{path: r.Path}
	rest := []byte(r.Review)
	for {
		u, n := bytes.Index(rest, uid), -1
		if review.Request.Name != "" {
			n = bytes.Index(rest, name)
		}
		switch {
		case u >= 0 && (n < 0 || u < n):
			t.parts, t.isUID = append(t.parts, rest[:u]), append(t.isUID, true)
			rest = rest[u+len(uid):]
		case n >= 0:
			t.parts, t.isUID = append(t.parts, rest[:n]), append(t.isUID, false)
			rest = rest[n+len(name):]
		default:
			t.parts = append(t.parts, rest)
			return t, nil
		}
	}
}

// body is the review for the n-th request about one of so many objects.
func (t *template) body(n, names int) (body []byte, uid string) {
	uid = "replay-" + strconv.Itoa(n)
	var b bytes.Buffer
	for i, part := range t.parts {
		b.Write(part)
		switch {
		case i == len(t.isUID):
		case t.isUID[i]:
			b.WriteString(strconv.Quote(uid))
		default:
			b.WriteString(`"name":"object-` + strconv.Itoa(n%names) + `"`)
		}
	}
	return b.Bytes(), uid
}
