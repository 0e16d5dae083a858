package s3express

import (
	"encoding/xml"
	"net/http"
	"strings"
)

// refusal is an error answer.
type refusal struct {
	status  int
	code    string
	message string
}

func notImplemented(what string) *refusal {
	return &refusal{501, "NotImplemented", "This functionality is not supported by directory buckets: " + what}
}

var (
	noSuchKey    = &refusal{404, "NoSuchKey", "The specified key does not exist."}
	noSuchUpload = &refusal{404, "NoSuchUpload", "The specified multipart upload does not exist."}
	precondition = &refusal{412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold"}
)

func (e *refusal) write(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		w.WriteHeader(e.status) // a HEAD's answer has no body to hold the code
		return
	}
	writeXML(w, e.status, struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}{Code: e.code, Message: e.message})
}

func writeXML(w http.ResponseWriter, status int, doc any) {
	body, err := xml.Marshal(doc)
	if err != nil {
		panic(err) // the documents of this package marshal
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = w.Write(append([]byte(xml.Header), body...)) // the client went away: its own loss
}

// refusedHeaders ask for what a directory bucket does not have.
var refusedHeaders = []string{
	"X-Amz-Tagging", "X-Amz-Object-Lock-Mode", "X-Amz-Object-Lock-Retain-Until-Date", "X-Amz-Object-Lock-Legal-Hold",
	"X-Amz-Server-Side-Encryption-Customer-Algorithm", "X-Amz-Website-Redirect-Location", "X-Amz-Request-Payer",
	"X-Amz-Write-Offset-Bytes", "X-Amz-Mfa", "X-Amz-Grant-Full-Control", "X-Amz-Acl",
}

func checkHeaders(c *call) *refusal {
	for _, name := range refusedHeaders {
		if c.Header.Get(name) != "" {
			return notImplemented("the header " + name)
		}
	}
	if class := c.Header.Get("X-Amz-Storage-Class"); class != "" && class != "EXPRESS_ONEZONE" {
		return &refusal{400, "InvalidStorageClass", "The storage class you specified is not valid"}
	}
	if c.Header.Get("Content-Md5") != "" && !c.has("delete") {
		return notImplemented("MD5 of a body")
	}
	if sum := c.Header.Get("X-Amz-Content-Sha256"); strings.HasPrefix(sum, "STREAMING-") {
		return notImplemented("chunked signatures, by this server")
	}
	return nil
}
