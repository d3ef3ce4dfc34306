package reqscan

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"
)

const formType = "multipart/form-data; boundary=XyZ"

// formNames are the text parts that the form doors read.
func formNames() *Names {
	return NewNames("model", "stream", "n", "seconds", "size", "quality", "response_format", "prompt")
}

// part is one text part, its headers given, each without its line end.
func part(content string, headers ...string) string {
	return "--XyZ\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n" + content + "\r\n"
}

// named is the disposition header of a text part.
func named(name string) string { return `Content-Disposition: form-data; name="` + name + `"` }

const (
	closing  = "--XyZ--\r\n"
	filePart = "--XyZ\r\nContent-Disposition: form-data; name=\"file\"; filename=\"model.wav\"\r\n" +
		"Content-Type: audio/wav\r\n\r\nRIFF\x00\xff\r\n\r\n--XyY\r\n"
)

func TestScanFormReadsModel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ body, model string }{
		{part("a/b", named("model")) + closing, "a/b"},
		{filePart + "\r\n" + part("a/b", named("model")) + closing, "a/b"},
		{"\r\n" + part("a/b", named("model")) + "--XyZ--", "a/b"},
		{part("a/b", `content-disposition:form-data;name=model`) + closing, "a/b"},
		{part("a/b", named("model"), "Content-Type: text/plain; charset=UTF-8", "Content-Transfer-Encoding: 8bit") + closing, "a/b"},
		{part("x\r\ny", named("prompt")) + part("é", named("model")) + closing, "é"},
		{part("", named("model")) + closing, ""},
		{part("one", named("tags")) + part("two", named("tags")) + part("a", named("image[]")) + part("m", named("model")) + closing, "m"},
	} {
		form, err := ScanForm(formType, []byte(tt.body), formNames())
		if err != nil {
			t.Errorf("ScanForm(%q) = %v, want no error", tt.body, err)
			continue
		}
		model, at, ok := form.Get("model")
		if model != tt.model || !ok || tt.body[at.Start:at.End] != tt.model {
			t.Errorf("ScanForm(%q): model = %q at %v, %v, want %q", tt.body, model, at, ok, tt.model)
		}
	}
}

func TestScanFormWithoutModel(t *testing.T) {
	t.Parallel()
	for _, body := range []string{filePart + "\r\n" + closing, closing, part("x", named("models")) + closing} {
		form, err := ScanForm(formType, []byte(body), formNames())
		if err != nil {
			t.Errorf("ScanForm(%q) = %v, want no error", body, err)
		}
		if model, _, ok := form.Get("model"); ok {
			t.Errorf("ScanForm(%q) finds the model %q", body, model)
		}
	}
	if _, _, ok := (&Form{}).Get("model"); ok {
		t.Error("the zero Form has a model")
	}
}

func TestScanFormRefuses(t *testing.T) {
	t.Parallel()
	model := part("m", named("model"))
	crowd := strings.Repeat(part("x", named("tags")), maxParts)
	for _, tt := range []struct{ body, want string }{
		{"", "begin with its boundary"},
		{"preamble\r\n" + model + closing, "begin with its boundary"},
		{model, "closing boundary is missing"},
		{model + "--XyZ", "does not end its line"},
		{model + closing + "more", "follows the closing boundary"},
		{model + closing + model + closing, "follows the closing boundary"},
		{model + part("n", named("model")) + closing, `duplicate part "model"`},
		{part("m", named("Model")) + closing, `write it as "model"`},
		{part("m", named("\u017ftream")) + closing, `write it as "stream"`},
		{part("m", named("model[]")) + closing, `write it as "model"`},
		{part("m", named("MODEL[0]")) + closing, `part "MODEL[0]"`},
		{part("m", named(" model")) + closing, "illegal characters"},
		{part("m", named(`mo\del`)) + closing, "illegal characters"},
		{part("m", named("model\x00")) + closing, "control byte 0x00"},
		{part("m", named("model")+`; filename="x"`) + closing, "must not have a file name"},
		{part("m", named("model")+`; filename*=utf-8''x`) + closing, "must not have a file name"},
		{part("m", named("model")+`; name="x"`) + closing, "malformed Content-Disposition"},
		{part("m", `Content-Disposition: form-data; name*=utf-8''model`) + closing, `unknown parameter "name*"`},
		{part("m", `Content-Disposition: form-data; name*0="mo"; name*1="del"`) + closing, `unknown parameter "name*0"`},
		{part("m", `Content-Disposition: form-data; Name="model"`) + closing, `unknown parameter "Name"`},
		{part("m", `Content-Disposition: form-data; filename="a\"; name=model; z=\"b"; name="x"`) + closing, "malformed Content-Disposition"},
		{part("m", `Content-Disposition: form-data; name="model`) + closing, "malformed Content-Disposition"},
		{part("m", `Content-Disposition: attachment; name="model"`) + closing, "not form-data"},
		{part("m", `Content-Disposition: form-data`) + closing, "has no name"},
		{part("m", "Content-Type: text/plain") + closing, "has no name"},
		{part("m", named("x"), named("model")) + closing, `two "Content-Disposition" headers`},
		{part("m", named("x"), ` ; name="model"`) + closing, "malformed part header"},
		{part("m", named("model"), "Content-Transfer-Encoding: base64") + closing, "part encoding"},
		{part("m", named("model"), "Content-Transfer-Encoding: quoted-printable") + closing, "part encoding"},
		{part("m", named("model"), "Content-Type: text/plain; charset=utf-7") + closing, "text/plain in UTF-8"},
		{part("m", named("model"), "Content-Type: application/json") + closing, "text/plain in UTF-8"},
		{part("m", named("model"), "X y: z") + closing, "malformed part header"},
		{part("utf-7", named("_charset_")) + closing, "send UTF-8"},
		{part("\xff", named("model")) + closing, "not UTF-8"},
		{"--XyZ\r\n" + named("model") + "\r\n--XyZ--\r\n", "do not end"},
		{"--XyZ\r\n" + named("model") + "\r\n\r\n--XyZ--\r\n", "do not end"},
		{part("m", named("x"), "A: "+strings.Repeat("b", maxPartHeader)) + closing, "do not end"},
		{strings.ReplaceAll(model+closing, "\r\n", "\n"), "does not end its line"},
		{part("a\n--XyZ\r\n"+named("model")+"\r\n\r\nm", named("x")) + closing, "does not begin its line"},
		{part("a--XyZ", named("x")) + closing, "does not begin its line"},
		{part("a", named("x")) + "--XyZ \r\n" + named("model") + "\r\n\r\nm\r\n" + closing, "does not end its line"},
		{part("a", named("x")) + "--XyZZ\r\n" + closing, "does not end its line"},
		{crowd + model + closing, "more than 1000 parts"},
	} {
		_, err := ScanForm(formType, []byte(tt.body), formNames())
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ScanForm(%.120q) = %v, want an error with %q", tt.body, err, tt.want)
		}
	}
}

func TestScanFormContentType(t *testing.T) {
	t.Parallel()
	body := part("m", named("model")) + closing
	for contentType, ok := range map[string]bool{
		formType:                                                   true,
		`Multipart/Form-Data; Boundary="XyZ"`:                      true,
		"multipart/form-data":                                      false,
		"multipart/form-data; boundary=":                           false,
		"multipart/form-data; boundary=a b":                        false,
		`multipart/form-data; boundary="Xy Z"`:                     false,
		"multipart/form-data; boundary*=us'en'XyZ":                 false,
		"multipart/form-data; boundary=XyZ; boundary=Q":            false,
		"multipart/mixed; boundary=XyZ":                            false,
		"multipart/form-data; boundary=" + strings.Repeat("b", 71): false,
		"application/json":                                         false,
		"":                                                         false,
	} {
		if _, err := ScanForm(contentType, []byte(body), formNames()); (err == nil) != ok {
			t.Errorf("ScanForm with Content-Type %q = %v, want accepted %v", contentType, err, ok)
		}
	}
}

func TestSpliceForm(t *testing.T) {
	t.Parallel()
	before, after := filePart+"\r\n--XyZ\r\n"+named("model")+"\r\n\r\n", "\r\n"+part("8", named("seconds"))+closing
	form, err := ScanForm(formType, []byte(before+"a/b"+after), formNames())
	if err != nil {
		t.Fatal(err)
	}
	_, at, _ := form.Get("model")
	got := Splice(nil, []byte(before+"a/b"+after), Edit{at, []byte("native-1")})
	if want := before + "native-1" + after; string(got) != want {
		t.Errorf("Splice = %q, want %q", got, want)
	}
	if seconds, _, ok := form.Get("seconds"); seconds != "8" || !ok {
		t.Errorf("seconds = %q, %v, want 8", seconds, ok)
	}
}

func TestRemoveFromForm(t *testing.T) {
	t.Parallel()
	model, seconds := part("a/b", named("model")), part("8", named("seconds"))
	for _, tt := range []struct{ body, want string }{
		{filePart + "\r\n" + model + seconds + closing, filePart + "\r\n" + seconds + closing},
		{model + seconds + closing, seconds + closing},
		{"\r\n" + seconds + model + closing, "\r\n" + seconds + closing},
		{model + closing, closing},
		{seconds + closing, seconds + closing},
	} {
		form, err := ScanForm(formType, []byte(tt.body), formNames())
		if err != nil {
			t.Fatal(err)
		}
		got := Splice(nil, []byte(tt.body), form.Remove("model"))
		if string(got) != tt.want {
			t.Errorf("%q without its model is %q, want %q", tt.body, got, tt.want)
		}
		if _, err := ScanForm(formType, got, formNames()); err != nil {
			t.Errorf("%q: %v", got, err)
		}
	}
}

// TestScanFormReadsWriters feeds what the standard library writes.
func TestScanFormReadsWriters(t *testing.T) {
	t.Parallel()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	file, err := w.CreateFormFile("file", "spéech one.wav")
	if err != nil {
		t.Fatal(err)
	}
	file.Write(bytes.Repeat([]byte("\r\n--\x00\xff"), 1000))
	for name, text := range map[string]string{"model": "acme/whisper", "prompt": "two\r\n\r\nlines"} {
		if err := w.WriteField(name, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	form, err := ScanForm(w.FormDataContentType(), body.Bytes(), formNames())
	if err != nil {
		t.Fatal(err)
	}
	if model, _, _ := form.Get("model"); model != "acme/whisper" {
		t.Errorf("model = %q, want acme/whisper", model)
	}
	if prompt, _, _ := form.Get("prompt"); prompt != "two\r\n\r\nlines" {
		t.Errorf("prompt = %q, want two lines", prompt)
	}
}

// readForm is what mime/multipart reads: every text of each part name.
func readForm(t *testing.T, contentType string, body []byte) map[string][]string {
	t.Helper()
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		t.Fatalf("mime.ParseMediaType(%q) = %v for an accepted form", contentType, err)
	}
	texts := map[string][]string{}
	for reader := multipart.NewReader(bytes.NewReader(body), params["boundary"]); ; {
		next, err := reader.NextPart()
		if err == io.EOF {
			return texts
		}
		if err != nil {
			t.Fatalf("mime/multipart cannot read the accepted form %q: %v", body, err)
		}
		text, err := io.ReadAll(next)
		if err != nil {
			t.Fatalf("mime/multipart cannot read a part of the accepted form %q: %v", body, err)
		}
		texts[next.FormName()] = append(texts[next.FormName()], string(text))
	}
}

func FuzzMultipart(f *testing.F) {
	for _, body := range []string{
		part("a/b", named("model")) + closing,
		filePart + "\r\n" + part("a/b", named("model")) + closing,
		part("m", named("model")) + part("n", named("model")) + closing,
		part("m", named("x")+`; filename="a\"; name=model; z=\"b"`) + closing,
		part("m", `Content-Disposition: form-data; name*=utf-8''model`) + closing,
		"--XyZ\r\n" + named("model") + "\r\n\r\n--XyZ--\r\n",
		part("a\n--XyZ\r\n"+named("model")+"\r\n\r\nm", named("x")) + closing,
		part("=61", named("model"), "Content-Transfer-Encoding: quoted-printable") + closing,
		"\r\n--XyZ--",
	} {
		f.Add("XyZ", []byte(body))
	}
	f.Add("-", []byte("---\r\n"+named("model")+"\r\n\r\nx\r\n-----"))
	f.Fuzz(func(t *testing.T, boundary string, body []byte) {
		contentType := `multipart/form-data; boundary="` + boundary + `"`
		form, err := ScanForm(contentType, body, formNames())
		if err != nil {
			return
		}
		texts := readForm(t, contentType, body)
		for _, name := range []string{"model", "stream", "prompt"} {
			text, at, ok := form.Get(name)
			read := texts[name]
			if ok != (len(read) == 1) || ok && (read[0] != text || string(body[at.Start:at.End]) != text) {
				t.Fatalf("ScanForm(%q) reads %s = %q, %v, mime/multipart reads %q", body, name, text, ok, read)
			}
		}
		if _, at, ok := form.Get("model"); ok {
			edited := Splice(nil, body, Edit{at, []byte("native")})
			if read := readForm(t, contentType, edited)["model"]; len(read) != 1 || read[0] != "native" {
				t.Fatalf("the edited form %q reads back as %q", edited, read)
			}
			left := Splice(nil, body, form.Remove("model"))
			if again, err := ScanForm(contentType, left, formNames()); err != nil || len(again.found) != len(form.found)-1 {
				t.Fatalf("%q without its model is %q: %d wanted parts, %v", body, left, len(again.found), err)
			}
		}
	})
}
