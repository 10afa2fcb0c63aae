// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// maxWords bounds what is repeated of a refusal, in bytes.
const maxWords = 256

// Result is the end of a request.
type Result string

// The results.
const (
	// Succeeded: the receiver has given an answer.
	Succeeded Result = "succeeded"
	// Refused: the receiver has answered with a status of 400 or more.
	Refused Result = "refused"
	// Failed: the receiver has not answered, or its answer cannot be used.
	Failed Result = "failed"
)

// exchange makes one request. failed says why it has no answer, in the words of the receiver where there are some.
func (r *Router) exchange(ctx context.Context, request deliver.Request) (answer Answer, failed string) {
	result := Failed
	defer func() {
		if r.config.Report == nil {
			return
		}
		if failed != "" {
			r.config.Report(result, failed, nil)
			return
		}
		r.config.Report(Succeeded, "", &answer)
	}()
	reply, failure := r.config.Sender.Send(ctx, request, MaxAnswer)
	switch {
	case failure != nil:
		return Answer{}, failure.String()
	case reply.Status >= 300 && reply.Status < 400:
		return Answer{}, fmt.Sprintf("posting: %s (%d)", deliver.CauseRedirect, reply.Status)
	case reply.Status < 200 || reply.Status >= 300:
		result = Refused
		return Answer{}, withMessage(fmt.Sprintf("the receiver refuses with status %d", reply.Status), wordsOf(reply.Body))
	}
	answer, err := ParseAnswer(reply.Body)
	if err != nil {
		return Answer{}, clean(err.Error())
	}
	answer.Message, answer.Version = clean(answer.Message), clean(answer.Version)
	return answer, ""
}

// wordsOf returns the message of a refusal, or the beginning of its text.
func wordsOf(body []byte) string {
	var said struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &said) == nil && said.Message != "" {
		return clean(said.Message)
	}
	return clean(strings.TrimSpace(string(body[:min(len(body), maxWords)])))
}

// clean has text of a receiver fit for a status.
func clean(text string) string { return diff.TruncateText(diff.Printable(text), maxWords) }

// observeURL is where a receiver is asked about a release.
func observeURL(base string, release Release) string {
	u, err := url.Parse(base)
	if err != nil {
		return base // the sender refuses it
	}
	u = u.JoinPath("observe")
	query := u.Query()
	query.Set("namespace", release.Namespace)
	query.Set("name", release.Name)
	query.Set("uid", string(release.UID))
	u.RawQuery = query.Encode()
	return u.String()
}
