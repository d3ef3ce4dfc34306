package simulator

import "net/http"

// defaultSeconds is the length of a video of DashScope or Ark that was not
// asked to have one; arkTokens is what a second of it costs.
const (
	defaultSeconds = 5
	arkTokens      = 1000
)

const (
	noTask      = "the task does not exist"
	badDuration = "the parameter duration is invalid"
)

// createTask makes a task of DashScope, which insists on being asked for one.
func (c *call) createTask() answer {
	if c.r.Header.Get("X-DashScope-Async") != "enable" {
		return c.fail(http.StatusForbidden, "current user api does not support synchronous calls.")
	}
	j, ok := c.createJob("", c.fields.object("parameters"), "duration", defaultSeconds)
	if !ok {
		return c.invalid(badDuration)
	}
	return jsonAnswer(object{"request_id": c.id(""), "output": object{"task_id": j.id, "task_status": taskStatus[j.status]}})
}

// taskStatus are DashScope's words for the states of a job.
var taskStatus = map[string]string{
	jobQueued: "PENDING", jobRunning: "RUNNING", jobSucceeded: "SUCCEEDED", jobFailed: "FAILED", jobCancelled: "CANCELED", jobExpired: "UNKNOWN",
}

// taskTime is how DashScope writes a moment.
const taskTime = "2006-01-02 15:04:05.000"

func (c *call) pollTask() answer {
	j, ok := c.job((*job).poll)
	if !ok {
		return jsonAnswer(object{"request_id": c.id(""), "output": object{"task_id": c.arg, "task_status": "UNKNOWN"}})
	}
	output := object{"task_id": j.id, "task_status": taskStatus[j.status], "submit_time": j.created.UTC().Format(taskTime)}
	reply := object{"request_id": c.id(""), "output": output}
	switch j.status {
	case jobSucceeded:
		output["end_time"], output["orig_prompt"] = j.finished.UTC().Format(taskTime), j.prompt
		output["video_url"] = c.fileURL(j.id + ".mp4")
		return c.reply(reply, "usage", object{"duration": j.seconds, "output_video_duration": j.seconds, "video_count": 1, "SR": 720})
	case jobFailed:
		output["code"], output["message"] = "InternalError", jobToldToFail
	}
	return jsonAnswer(reply)
}

func (c *call) cancelTask() answer {
	j, ok := c.job((*job).cancel)
	switch {
	case !ok:
		return c.fail(http.StatusNotFound, noTask)
	case j.status != jobCancelled:
		return c.invalid("the task is no longer pending")
	}
	return jsonAnswer(object{"request_id": c.id("")})
}

func (c *call) createArk() answer {
	j, ok := c.createJob("cgt-", c.fields, "duration", defaultSeconds)
	if !ok {
		return c.invalid(badDuration)
	}
	return jsonAnswer(object{"id": j.id})
}

func (c *call) pollArk() answer {
	j, ok := c.job((*job).poll)
	if !ok {
		return c.fail(http.StatusNotFound, noTask)
	}
	reply := object{"id": j.id, "model": j.model, "status": j.status, "error": nil, "created_at": j.created.Unix(), "updated_at": c.now().Unix()}
	switch j.status {
	case jobSucceeded:
		t := c.bill(tokens{output: int64(j.seconds * arkTokens)})
		reply["content"], reply["duration"] = object{"video_url": c.fileURL(j.id + ".mp4")}, j.seconds
		return c.reply(reply, "usage", object{"completion_tokens": t.output, "total_tokens": t.output})
	case jobFailed:
		reply["error"] = object{"code": "InternalServiceError", "message": jobToldToFail}
	}
	return jsonAnswer(reply)
}

// deleteArk cancels a queued task, refuses for a running one, and forgets one
// that has ended.
func (c *call) deleteArk() answer {
	j, ok := c.job((*job).cancel)
	switch {
	case !ok:
		return c.fail(http.StatusNotFound, noTask)
	case j.status == jobRunning:
		return c.invalid("a running task cannot be deleted")
	case j.status != jobCancelled:
		c.p.jobs.remove(c.arg)
	}
	return jsonAnswer(object{})
}
