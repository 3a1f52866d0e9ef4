"""The boundary between the toolkit and code of other people: their failures end in one sentence that names them."""
