// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"errors"
	"fmt"

	"golang.org/x/oauth2"
)

// maxWords bounds an error that quotes an answer of the issuer.
const maxWords = 300

// wordsOf tells why the token endpoint refused, by the code of RFC 6749, 5.2, alone: an answer may quote the code
// or the token of the request.
func wordsOf(err error) error {
	refused, is := errors.AsType[*oauth2.RetrieveError](err)
	if !is {
		return shortened(err)
	}
	status := 0
	if refused.Response != nil {
		status = refused.Response.StatusCode
	}
	return shortened(fmt.Errorf("the token endpoint answered %d %q", status, refused.ErrorCode))
}

func shortened(err error) error {
	if words := err.Error(); len(words) > maxWords {
		return errors.New(words[:maxWords] + "…")
	}
	return err
}
