"""Every client of the table in matrix.py."""
from clients.anthropic_python import AnthropicPython
from clients.curl import Curl
from clients.langchain import LangChain
from clients.node import AnthropicNode, OpenAINode
from clients.ollama_python import OllamaPython
from clients.openai_python import OpenAIPython

CLIENTS = [OpenAIPython(), OpenAINode(), AnthropicPython(), AnthropicNode(), LangChain(), OllamaPython(), Curl()]
