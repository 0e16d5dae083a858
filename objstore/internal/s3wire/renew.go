package s3wire

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/strandline/strandline/objstore"
)

// Signer is who a request was signed as. It holds no secret key.
type Signer struct {
	AccessKey string
	Token     string // session token; "" for lasting credentials
}

// Renew fetches credentials anew after a store refused a request's as expired. nil: newer
// ones than used are in place, and the request may be made again. An error that is a
// *SourceError says why there are none.
type Renew func(ctx context.Context, used Signer) error

// signerOf reads the signer from a signature: "… Credential=KEY/date/…".
func signerOf(req *http.Request) Signer {
	s := Signer{Token: req.Header.Get("X-Amz-Security-Token")}
	_, rest, ok := strings.Cut(req.Header.Get("Authorization"), "Credential=")
	if key, _, ok2 := strings.Cut(rest, "/"); ok && ok2 {
		s.AccessKey = key
	}
	return s
}

// strike takes what identifies the signer out of a store's message.
func (s Signer) strike(message string) string { return Strike(message, s.Token, s.AccessKey) }

// Strike replaces every secret in text. Empty ones are passed over.
func Strike(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}

// expired tells an answer about temporary credentials that are over.
func expired(code string) bool {
	switch code {
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired":
		return true
	}
	return false
}

// forgotten tells an answer that a store gives to credentials it does not know. MinIO
// drops temporary ones when they expire and says this of them.
func forgotten(code string) bool {
	switch code {
	case "InvalidAccessKeyId", "InvalidToken", "InvalidClientTokenId", "XAdminUserNotFound":
		return true
	}
	return false
}

// renewal fetches newer credentials where the answer in ex calls for it: temporary ones
// that are expired, or that this store took before and does not know any more. It runs
// before the verdict, so that "try again" is said only if that can help.
func (t *Transport) renewal(ctx context.Context, ex *Exchange) {
	code, used := ex.refusal()
	if code == "" {
		if p := t.proven.Load(); p == nil || *p != used {
			now := used // on the heap only when it changes
			t.proven.Store(&now)
		}
		return
	}
	known := t.proven.Load()
	if !expired(code) && (!forgotten(code) || used.Token == "" || known == nil || *known != used) {
		return
	}
	err := errors.New("their source cannot renew them")
	if t.renew != nil {
		err = t.renew(ctx, used)
	}
	ex.renewed(err)
}

// refusal is the code of a refusal, "" for a success, and who signed.
func (ex *Exchange) refusal() (code string, used Signer) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if ex.code == "" && ex.status >= http.StatusMultipleChoices {
		return "an error without a code", ex.signer
	}
	return ex.code, ex.signer
}

func (ex *Exchange) renewed(err error) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.asked, ex.renewal = true, err
}

// judgeExpiry is the verdict on credentials that are over. Such a refusal was not
// applied, so a write may be made again like a read.
func (ex *Exchange) judgeExpiry() (hint string, kind error) {
	var source *SourceError
	switch {
	case ex.renewal == nil && ex.asked:
		return "the credentials had expired, newer ones are in place: try again", objstore.ErrUnavailable
	case errors.As(ex.renewal, &source):
		return "the credentials have expired: " + source.Error(), source.Kind
	case errors.Is(ex.renewal, context.Canceled), errors.Is(ex.renewal, context.DeadlineExceeded):
		return "the credentials have expired, and the call ended while newer ones were fetched", objstore.ErrUnavailable
	default:
		return "the credentials have expired, and their source gives no newer ones: renew them there", objstore.ErrDenied
	}
}
